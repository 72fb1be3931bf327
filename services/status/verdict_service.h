// muster.v1.VerdictService.
#ifndef MUSTER_SERVICES_STATUS_VERDICT_SERVICE_H_
#define MUSTER_SERVICES_STATUS_VERDICT_SERVICE_H_

#include "muster/v1/verdicts.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call.h"
#include "services/status/board/verdict_log.h"

namespace muster {

// Thread-safe.
class VerdictService : public v1::VerdictService::CallbackService {
 public:
  VerdictService(const RpcRuntime& runtime, VerdictLog& verdicts, const Clock& clock)
      : runtime_(runtime), verdicts_(verdicts), clock_(clock) {}

  grpc::ServerWriteReactor<v1::Verdict>* FollowVerdicts(
      grpc::CallbackServerContext* context, const v1::FollowVerdictsRequest* request) override;

 private:
  const RpcRuntime runtime_;
  VerdictLog& verdicts_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_VERDICT_SERVICE_H_
