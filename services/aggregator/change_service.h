// muster.v1.ChangeService.
#ifndef MUSTER_SERVICES_AGGREGATOR_CHANGE_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_CHANGE_SERVICE_H_

#include "muster/v1/changes.grpc.pb.h"
#include "services/aggregator/changes/change_dispatcher.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call.h"
#include "services/common/rpc/stream.h"
#include "services/common/store/change_feed.h"
#include "services/common/store/state_store.h"

namespace muster {

// Thread-safe.
class ChangeService : public v1::ChangeService::CallbackService {
 public:
  // The URI of each operator begins with `operators`.
  ChangeService(const RpcRuntime& runtime, StateStore& store, ChangeFeed& feed,
                ChangeDispatcher& changes, std::string operators, const Clock& clock)
      : runtime_(runtime),
        store_(store),
        feed_(feed),
        changes_(changes),
        operators_(std::move(operators)),
        clock_(clock) {}

  grpc::ServerWriteReactor<v1::FollowChangesResponse>* FollowChanges(
      grpc::CallbackServerContext* context, const v1::FollowChangesRequest* request) override;

 private:
  const RpcRuntime runtime_;
  StateStore& store_;
  ChangeFeed& feed_;
  ChangeDispatcher& changes_;
  const std::string operators_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_CHANGE_SERVICE_H_
