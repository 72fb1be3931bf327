#include "services/status/heartbeat_service.h"

#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/heartbeat/heartbeat_check.h"
#include "services/common/rpc/proto_time.h"

namespace muster {

grpc::ServerBidiReactor<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>*
HeartbeatService::RelayHeartbeats(grpc::CallbackServerContext* context) {
  const auto handler = std::make_shared<RelayHeartbeatHandler>(runtime_, parts_);
  auto* reactor = StartServerStream<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>(
      runtime_, context, "/muster.v1.HeartbeatService/RelayHeartbeats",
      RelayHeartbeatHandler::Options(parts_.first_within), handler);
  MutexLock lock(mutex_);
  std::erase_if(relays_, [](const auto& relay) { return relay.expired(); });
  relays_.push_back(handler);
  return reactor;
}

void HeartbeatService::EndRelays(const absl::Status& why) {
  std::vector<std::weak_ptr<RelayHeartbeatHandler>> relays;
  {
    MutexLock lock(mutex_);
    relays = relays_;
  }
  for (const auto& weak : relays) {
    if (const auto relay = weak.lock()) relay->End(why);
  }
}

grpc::ServerUnaryReactor* HeartbeatService::SendHeartbeat(grpc::CallbackServerContext* context,
                                                          const v1::SendHeartbeatRequest* request,
                                                          v1::SendHeartbeatResponse* response) {
  return Answer(
      runtime_, context, "/muster.v1.HeartbeatService/SendHeartbeat", {*request, response},
      [this, request, response](Call& call) { return HandleOne(call, *request, response); });
}

absl::Status HeartbeatService::HandleOne(Call& call, const v1::SendHeartbeatRequest& request,
                                         v1::SendHeartbeatResponse* response) {
  const v1::ResultKey& key = request.key();
  RETURN_IF_ERROR(call.Authorize(Resource::Pair(key.run(), key.plugin(), key.node())));
  RETURN_IF_ERROR(ValidateName("node", key.node()));
  ASSIGN_OR_RETURN(auto uri, ToUri(call.caller().identity));
  ASSIGN_OR_RETURN(auto stream_ref, parts_.registry.Visit(uri, key.node()));
  v1::Activity activity = request.activity();
  CleanActivity(&activity);
  if (const absl::Status took = parts_.listener.HandleActivity(key, stream_ref.sender(), activity);
      !took.ok()) {
    parts_.registry.Leave(stream_ref);
    return took;
  }
  parts_.contact(key, *stream_ref.sender());
  const absl::Duration interval = parts_.registry.SendHeartbeat(stream_ref).interval;
  ToProto(interval, response->mutable_interval());
  return absl::OkStatus();
}

}  // namespace muster
