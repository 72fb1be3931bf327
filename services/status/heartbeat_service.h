// muster.v1.HeartbeatService.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEAT_SERVICE_H_
#define MUSTER_SERVICES_STATUS_HEARTBEAT_SERVICE_H_

#include <memory>
#include <utility>
#include <vector>

#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/call.h"
#include "services/status/heartbeat_handler.h"
#include "services/status/relay_heartbeat_handler.h"

namespace muster {

// Thread-safe.
class HeartbeatService : public v1::HeartbeatService::CallbackService {
 public:
  HeartbeatService(const RpcRuntime& runtime, HeartbeatParts parts)
      : runtime_(runtime), parts_(std::move(parts)) {}

  grpc::ServerBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>*
  StreamHeartbeats(grpc::CallbackServerContext* context) override {
    return HeartbeatHandler::Start(runtime_, context, parts_);
  }

  grpc::ServerBidiReactor<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>* RelayHeartbeats(
      grpc::CallbackServerContext* context) override;

  grpc::ServerUnaryReactor* SendHeartbeat(grpc::CallbackServerContext* context,
                                          const v1::SendHeartbeatRequest* request,
                                          v1::SendHeartbeatResponse* response) override;

  // Ends the streams of all relays: this service stops.
  void EndRelays(const absl::Status& why);

 private:
  absl::Status HandleOne(Call& call, const v1::SendHeartbeatRequest& request,
                         v1::SendHeartbeatResponse* response);

  const RpcRuntime runtime_;
  const HeartbeatParts parts_;
  Mutex mutex_;
  std::vector<std::weak_ptr<RelayHeartbeatHandler>> relays_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEAT_SERVICE_H_
