#include "services/status/heartbeat_service.h"

#include "services/common/base/names.h"
#include "services/status/heartbeats/beat_check.h"

namespace muster {

grpc::ServerBidiReactor<v1::BeatAllRequest, v1::BeatAllResponse>* HeartbeatService::BeatAll(
    grpc::CallbackServerContext* context) {
  const std::shared_ptr<RelayBeatReactor> reactor =
      RelayBeatReactor::Start(runtime_, context, parts_);
  MutexLock lock(mutex_);
  std::erase_if(relays_, [](const auto& relay) { return relay.expired(); });
  relays_.push_back(reactor);
  return reactor.get();
}

void HeartbeatService::EndRelays(const absl::Status& why) {
  std::vector<std::weak_ptr<RelayBeatReactor>> relays;
  {
    MutexLock lock(mutex_);
    relays = relays_;
  }
  for (const auto& weak : relays) {
    if (const auto relay = weak.lock()) relay->End(why);
  }
}

grpc::ServerUnaryReactor* HeartbeatService::BeatOnce(grpc::CallbackServerContext* context,
                                                     const v1::BeatOnceRequest* request,
                                                     v1::BeatOnceResponse* response) {
  return Answer(
      runtime_, context, "/muster.v1.HeartbeatService/BeatOnce",
      [this, request, response](Call& call) { return TakeOnce(call, *request, response); });
}

absl::Status HeartbeatService::TakeOnce(Call& call, const v1::BeatOnceRequest& request,
                                        v1::BeatOnceResponse* response) {
  const v1::ResultKey& key = request.key();
  const absl::Status allowed = call.Authorize(Resource::Pair(key.run(), key.plugin(), key.node()));
  if (!allowed.ok()) return allowed;
  if (const absl::Status named = ValidateName("node", key.node()); !named.ok()) return named;
  auto uri = ToUri(call.caller().identity);
  if (!uri.ok()) return uri.status();
  auto seat = parts_.registry.Visit(*uri, key.node());
  if (!seat.ok()) return seat.status();
  v1::Activity activity = request.activity();
  CleanActivity(&activity);
  if (const absl::Status took = parts_.listener.Took(key, seat->sender(), activity); !took.ok()) {
    parts_.registry.Leave(*seat);
    return took;
  }
  parts_.contact(key, *seat->sender());
  const absl::Duration interval = parts_.registry.BeatOnce(*seat).interval;
  response->mutable_interval()->set_seconds(absl::ToInt64Seconds(interval));
  response->mutable_interval()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(interval % absl::Seconds(1))));
  return absl::OkStatus();
}

}  // namespace muster
