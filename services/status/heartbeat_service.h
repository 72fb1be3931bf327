// muster.v1.HeartbeatService.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEAT_SERVICE_H_
#define MUSTER_SERVICES_STATUS_HEARTBEAT_SERVICE_H_

#include <utility>

#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/common/rpc/call.h"
#include "services/status/beat_reactor.h"

namespace muster {

// Thread-safe.
class HeartbeatService : public v1::HeartbeatService::CallbackService {
 public:
  HeartbeatService(const RpcRuntime& runtime, BeatParts parts)
      : runtime_(runtime), parts_(std::move(parts)) {}

  grpc::ServerBidiReactor<v1::BeatRequest, v1::BeatResponse>* Beat(
      grpc::CallbackServerContext* context) override {
    return BeatReactor::Start(runtime_, context, parts_);
  }

  grpc::ServerUnaryReactor* BeatOnce(grpc::CallbackServerContext* context,
                                     const v1::BeatOnceRequest* request,
                                     v1::BeatOnceResponse* response) override;

 private:
  absl::Status TakeOnce(Call& call, const v1::BeatOnceRequest& request,
                        v1::BeatOnceResponse* response);

  const RpcRuntime runtime_;
  const BeatParts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEAT_SERVICE_H_
