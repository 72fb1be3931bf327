#include "services/status/beat_reactor.h"

#include <utility>

#include "services/common/errors/heartbeats.h"

namespace muster {
namespace {

constexpr std::string_view kMethod = "/muster.v1.HeartbeatService/StreamHeartbeats";

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
    : parts_(parts), context_(context), call_(runtime, context, kMethod), intake_(parts) {}

// Who never beats is nobody whom silence could betray.
void BeatReactor::AwaitFirst() {
  first_late_ = std::make_unique<grpc::Alarm>();
  first_late_->Set(absl::ToChronoTime(absl::Now() + parts_.first_within),
                   [weak = weak_from_this()](bool expired) {
                     const auto self = expired ? weak.lock() : nullptr;
                     if (self == nullptr) return;
                     {
                       MutexLock lock(self->mutex_);
                       if (self->begun_) return;
                     }
                     self->End(errors::NoFirstHeartbeat(self->parts_.first_within));
                   });
}

void BeatReactor::OnReadDone(bool ok) {
  if (first_late_ != nullptr) {
    {
      MutexLock lock(mutex_);
      begun_ = true;
    }
    first_late_.reset();
  }
  if (!ok) {
    return Finish(errors::InvalidHeartbeat("the stream ended without a goodbye, or with a message "
                                           "that cannot be read"),
                  /*by_peer=*/true);
  }
  BeatIntake::Way way;
  // Later beats do not need it.
  if (!intake_.seat()) {
    way.line = weak_from_this();
    if (!call_.caller().via) way.peer = ParseTcpPeer(context_->peer());
  }
  const auto answer = intake_.Take(
      request_, call_.caller().identity,
      [this](const Resource& resource) { return call_.Authorize(resource); }, way);
  if (!answer.ok()) return End(answer.status());
  Answer(*answer);
  if (request_.goodbye()) return End(absl::OkStatus());
  // What a first message, or one with news, needed is not held until the next.
  if (!request_.instance_id().empty() || request_.activities_size() > 0) {
    request_ = v1::StreamHeartbeatsRequest();
  }
  MutexLock lock(mutex_);
  if (!ended_ && !end_) StartRead(&request_);
}

void BeatReactor::Answer(const Registry::Answer& answer) {
  MutexLock lock(mutex_);
  answer_ = answer;
  answering_ = true;
  Send();
}

void BeatReactor::Probe() {
  MutexLock lock(mutex_);
  probing_ = true;
  Send();
}

// Sends what waits, unless something is on its way: then the newest goes out after it.
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
  MutexLock lock(mutex_);
  writing_ = false;
  if (ended_) return;
  if (end_) {
    ended_ = true;
    const grpc::Status final = call_.Final(*end_);
    lock.Unlock();
    ServerBidiReactor::Finish(final);
    return;
  }
  if (ok) return Send();
  lock.Unlock();
  Finish(absl::CancelledError("the sender went away"), /*by_peer=*/true);
}

void BeatReactor::OnCancel() {
  Finish(absl::CancelledError("the call was cancelled"), /*by_peer=*/true);
}

void BeatReactor::End(const absl::Status& why) { Finish(why, /*by_peer=*/false); }

void BeatReactor::Finish(const absl::Status& status, bool by_peer) {
  MutexLock lock(mutex_);
  if (ended_ || end_) return;
  end_ = status;
  by_peer_ = by_peer;
  if (writing_) return;
  ended_ = true;
  const grpc::Status final = call_.Final(status);
  lock.Unlock();
  ServerBidiReactor::Finish(final);
}

void BeatReactor::OnDone() {
  bool by_peer = false;
  {
    MutexLock lock(mutex_);
    by_peer = by_peer_;
  }
  if (intake_.seat() && parts_.is_revoked(call_.caller())) {
    parts_.registry.Revoked(*intake_.seat());
  } else if (intake_.seat()) {
    parts_.registry.Closed(*intake_.seat(), by_peer);
  }
  self_.reset();
}

}  // namespace muster
