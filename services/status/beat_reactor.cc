#include "services/status/beat_reactor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/errors.h"
#include "services/status/heartbeats/beat_check.h"

namespace muster {
namespace {

constexpr std::string_view kMethod = "/muster.v1.HeartbeatService/Beat";

// Pairs that a stream remembers to have told of; what is beyond is told of more often.
constexpr size_t kMaxContacts = 1000;

void SetDuration(absl::Duration duration, google::protobuf::Duration* to) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  to->set_seconds(seconds);
  to->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

void SetTime(absl::Time time, google::protobuf::Timestamp* to) {
  const int64_t micros = absl::ToUnixMicros(time);
  to->set_seconds(micros / 1'000'000);
  to->set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
}

}  // namespace

BeatReactor* BeatReactor::Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                const BeatParts& parts) {
  std::shared_ptr<BeatReactor> reactor(new BeatReactor(runtime, context, parts));
  reactor->self_ = reactor;
  if (!reactor->call_.caller_status().ok()) {
    reactor->End(reactor->call_.caller_status());
  } else {
    reactor->AwaitFirst();
    reactor->StartRead(&reactor->request_);
  }
  return reactor.get();
}

BeatReactor::BeatReactor(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                         const BeatParts& parts)
    : parts_(parts), context_(context), call_(runtime, context, kMethod) {}

// Who never beats is nobody whom silence could betray.
void BeatReactor::AwaitFirst() {
  first_late_ = std::make_unique<grpc::Alarm>();
  first_late_->Set(absl::ToChronoTime(absl::Now() + parts_.first_within),
                   [weak = weak_from_this()](bool expired) {
                     const auto self = expired ? weak.lock() : nullptr;
                     if (self == nullptr) return;
                     {
                       std::lock_guard lock(self->mutex_);
                       if (self->begun_) return;
                     }
                     self->End(errors::NoFirstHeartbeat(self->parts_.first_within));
                   });
}

void BeatReactor::OnReadDone(bool ok) {
  if (first_late_ != nullptr) {
    {
      std::lock_guard lock(mutex_);
      begun_ = true;
    }
    first_late_.reset();
  }
  if (!ok) {
    return Finish(errors::InvalidHeartbeat("the stream ended without a goodbye, or with a message "
                                           "that cannot be read"),
                  /*by_peer=*/true);
  }
  const absl::Status status = Take();
  if (!status.ok()) return End(status);
  if (request_.goodbye()) return End(absl::OkStatus());
  // What a first message, or one with news, needed is not held until the next.
  if (!request_.instance_id().empty() || request_.activities_size() > 0) {
    request_ = v1::BeatRequest();
  }
  std::lock_guard lock(mutex_);
  if (!ended_ && !end_) StartRead(&request_);
}

absl::Status BeatReactor::Take() {
  const bool first = !seat_;
  if (first) {
    if (const absl::Status status = Begin(); !status.ok()) return status;
  }
  const std::string& node = seat_->sender()->node();
  if (const absl::Status status = CheckBeat(request_, node, instance_); !status.ok()) {
    return status;
  }
  Registry::Answer answer;
  if (!parts_.registry.IsNews(*seat_, request_.sequence(), &answer)) {
    request_.set_goodbye(false);
    Answer(answer);
    return absl::OkStatus();
  }
  if (const absl::Status status = TakeActivities(); !status.ok()) return status;
  // A run's credential is for one pair: who beats with it is at work on that.
  if (first && request_.activities_size() == 0 && RunOf(call_.caller().identity)) {
    if (const absl::Status status = TakeActivity(v1::Activity()); !status.ok()) return status;
  }
  answer =
      parts_.registry.Beat(*seat_, request_.sequence(), ClockSkew(request_, parts_.clock.Now()));
  if (request_.goodbye()) parts_.registry.Goodbye(*seat_);
  Answer(answer);
  return absl::OkStatus();
}

absl::Status BeatReactor::Begin() {
  const Identity& identity = call_.caller().identity;
  auto node = NodeOf(identity, request_);
  // Who is not allowed to beat at all is told that, and not what is wrong with the message.
  v1::ResultKey own;
  if (node.ok()) own.set_node(*node);
  if (const auto run = RunOf(identity)) own.set_run(std::string(*run));
  if (const auto* pair = std::get_if<RunNodeIdentity>(&identity.name)) own.set_plugin(pair->plugin);
  if (const auto* any = std::get_if<RunPluginIdentity>(&identity.name)) own.set_plugin(any->plugin);
  const absl::Status allowed = call_.Authorize(Resource::Pair(own.run(), own.plugin(), own.node()));
  if (!node.ok()) return node.status();
  if (!allowed.ok()) return allowed;
  if (const absl::Status status = CheckBeat(request_, *node, request_.instance_id());
      !status.ok()) {
    return status;
  }
  auto uri = ToUri(identity);
  if (!uri.ok()) return uri.status();
  instance_ = request_.instance_id();
  const TcpPeer peer = call_.caller().via ? TcpPeer() : ParseTcpPeer(context_->peer());
  auto seat = parts_.registry.Open(
      {*std::move(uri), *std::move(node), instance_, request_.boot_id(), UptimeOf(request_)},
      weak_from_this(), peer);
  if (!seat.ok()) return seat.status();
  seat_ = *std::move(seat);
  return absl::OkStatus();
}

absl::Status BeatReactor::TakeActivities() {
  for (v1::Activity& activity : *request_.mutable_activities()) {
    CleanActivity(&activity);
    if (const absl::Status status = TakeActivity(activity); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BeatReactor::TakeActivity(const v1::Activity& activity) {
  const std::shared_ptr<const Sender> sender = seat_->sender();
  const auto key = PairOf(call_.caller().identity, sender->node(), activity.key());
  if (!key.ok()) return key.status();
  const absl::Status allowed =
      call_.Authorize(Resource::Pair(key->run(), key->plugin(), key->node()));
  if (!allowed.ok()) return allowed;
  if (const absl::Status took = parts_.listener.Took(*key, sender, activity); !took.ok()) {
    return took;
  }
  const size_t hash = std::hash<std::string>()(absl::StrCat(key->run(), "/", key->plugin()));
  if (std::find(contacts_.begin(), contacts_.end(), hash) != contacts_.end()) {
    return absl::OkStatus();
  }
  if (contacts_.size() < kMaxContacts) contacts_.push_back(hash);
  parts_.contact(*key, *sender);
  return absl::OkStatus();
}

void BeatReactor::Answer(const Registry::Answer& answer) {
  std::lock_guard lock(mutex_);
  answer_ = answer;
  answering_ = true;
  Send();
}

void BeatReactor::Probe() {
  std::lock_guard lock(mutex_);
  probing_ = true;
  Send();
}

// Sends what waits, unless something is on its way: then the newest goes out after it. Under
// mutex_.
void BeatReactor::Send() {
  if (writing_ || ended_ || end_ || (!answering_ && !probing_)) return;
  response_.set_sequence(answer_.sequence);
  SetDuration(answer_.interval, response_.mutable_interval());
  SetTime(parts_.clock.Now(), response_.mutable_time());
  response_.set_probe(probing_ && !answering_);
  answering_ = probing_ = false;
  writing_ = true;
  call_.BeginWrite();
  StartWrite(&response_);
}

void BeatReactor::OnWriteDone(bool ok) {
  call_.EndWrite();
  std::unique_lock lock(mutex_);
  writing_ = false;
  if (ended_) return;
  if (end_) {
    ended_ = true;
    const grpc::Status final = call_.Final(*end_);
    lock.unlock();
    ServerBidiReactor::Finish(final);
    return;
  }
  if (ok) return Send();
  lock.unlock();
  Finish(absl::CancelledError("the sender went away"), /*by_peer=*/true);
}

void BeatReactor::OnCancel() {
  Finish(absl::CancelledError("the call was cancelled"), /*by_peer=*/true);
}

void BeatReactor::End(const absl::Status& why) { Finish(why, /*by_peer=*/false); }

void BeatReactor::Finish(const absl::Status& status, bool by_peer) {
  std::unique_lock lock(mutex_);
  if (ended_ || end_) return;
  end_ = status;
  by_peer_ = by_peer;
  if (writing_) return;
  ended_ = true;
  const grpc::Status final = call_.Final(status);
  lock.unlock();
  ServerBidiReactor::Finish(final);
}

void BeatReactor::OnDone() {
  if (seat_ && parts_.is_revoked(call_.caller())) {
    parts_.registry.Revoked(*seat_);
  } else if (seat_) {
    parts_.registry.Closed(*seat_, by_peer_);
  }
  self_.reset();
}

}  // namespace muster
