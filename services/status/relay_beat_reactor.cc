#include "services/status/relay_beat_reactor.h"

#include <algorithm>
#include <string>

#include "services/common/base/error.h"
#include "services/common/base/mutex.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/rpc.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/caller.h"

namespace muster {
namespace {

constexpr std::string_view kMethod = "/muster.v1.HeartbeatService/RelayHeartbeats";
constexpr std::string_view kOfOne = "/muster.v1.HeartbeatService/StreamHeartbeats";

constexpr int kMaxSendersInMessage = 1000;
constexpr int kMaxHeard = 100'000;
constexpr size_t kMaxMembers = 100'000;
constexpr size_t kMaxTold = 1000;  // refusals or probes in a message

void SetDuration(absl::Duration duration, google::protobuf::Duration* to) {
  to->set_seconds(absl::ToInt64Seconds(duration));
  to->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration % absl::Seconds(1))));
}

void SetTime(absl::Time time, google::protobuf::Timestamp* to) {
  const int64_t micros = absl::ToUnixMicros(time);
  to->set_seconds(micros / 1'000'000);
  to->set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
}

}  // namespace

// One of those whom the relay speaks for. Its line outlives the stream, and then leads nowhere.
class RelayBeatReactor::Member : public BeatLine {
 public:
  Member(std::weak_ptr<RelayBeatReactor> stream, int32_t id, const BeatParts& parts)
      : intake(parts), stream_(std::move(stream)), id_(id) {}

  // BeatLine.
  void Probe() override {
    if (const auto stream = stream_.lock()) stream->Probe(id_);
  }
  void End(const absl::Status& why) override {
    const auto stream = stream_.lock();
    if (stream == nullptr) return;
    // That the service stops is no fault of each sender.
    if (ReasonOf(why) == "STATUS_STOPPING") return stream->End(why);
    stream->Refuse(id_, why);
  }

  BeatIntake intake;
  std::string uri;
  std::shared_ptr<const Caller> caller;
  absl::Time until;  // when its word for the relay ends

 private:
  const std::weak_ptr<RelayBeatReactor> stream_;
  const int32_t id_;
};

std::shared_ptr<RelayBeatReactor> RelayBeatReactor::Start(const RpcRuntime& runtime,
                                                          grpc::CallbackServerContext* context,
                                                          const BeatParts& parts) {
  std::shared_ptr<RelayBeatReactor> reactor(new RelayBeatReactor(runtime, context, parts));
  reactor->self_ = reactor;
  if (const absl::Status begun = reactor->Begin(); !begun.ok()) {
    reactor->End(begun);
  } else {
    reactor->StartRead(&reactor->request_);
  }
  return reactor;
}

RelayBeatReactor::RelayBeatReactor(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                   const BeatParts& parts)
    : runtime_(runtime), parts_(parts), call_(runtime, context, kMethod) {}

absl::Status RelayBeatReactor::Begin() {
  if (!call_.caller_status().ok()) return call_.caller_status();
  RETURN_IF_ERROR(call_.Authorize(Resource::Own()));
  return absl::OkStatus();
}

// Whose senders these are: each of them has signed for that relay.
absl::Status RelayBeatReactor::OpenRelay() {
  RETURN_IF_ERROR(ValidateName("relay", request_.relay()));
  const auto relay = parts_.registry.OpenRelay(request_.relay());
  if (relay.ok()) relay_ = *relay;
  return relay.status();
}

void RelayBeatReactor::OnReadDone(bool ok) {
  {
    MutexLock lock(mutex_);
    if (end_ || !ok) {
      // A relay that goes says nothing: its senders come back by another way, or with it.
      if (!end_) end_ = absl::OkStatus();
      const auto final = MarkEndedIfIdle();
      lock.Unlock();
      if (final) Finish(*final);
      return;
    }
    taking_ = true;
  }
  const bool posted =
      runtime_.executor->Post([self = shared_from_this()] { self->Taken(self->Take()); });
  if (!posted) Taken(errors::Overloaded());
}

void RelayBeatReactor::Taken(const absl::Status& status) {
  MutexLock lock(mutex_);
  taking_ = false;
  if (!status.ok() && !end_) end_ = status;
  if (end_) {
    const auto final = MarkEndedIfIdle();
    lock.Unlock();
    if (final) Finish(*final);
    return;
  }
  StartRead(&request_);
}

absl::Status RelayBeatReactor::Take() {
  std::vector<int32_t> gone;
  {
    MutexLock lock(mutex_);
    gone.swap(gone_);
  }
  for (const int32_t id : gone) Drop(id);
  if (request_.senders_size() > kMaxSendersInMessage || request_.heard_ids_size() > kMaxHeard) {
    return errors::InvalidHeartbeat("more senders than a message may have");
  }
  if (relay_ == nullptr) {
    RETURN_IF_ERROR(OpenRelay());
  }
  for (v1::RelayHeartbeatsRequest::Sender& sender : *request_.mutable_senders()) {
    RETURN_IF_ERROR(TakeSender(sender));
  }
  for (const int32_t id : request_.heard_ids()) TakeHeard(id);
  request_ = v1::RelayHeartbeatsRequest();
  Answer();
  return absl::OkStatus();
}

absl::Status RelayBeatReactor::TakeSender(v1::RelayHeartbeatsRequest::Sender& sender) {
  const int32_t id = sender.id();
  if (id < 1) return errors::InvalidHeartbeat("a sender without a number");
  if (sender.ended()) {
    Drop(id);
    return absl::OkStatus();
  }
  std::shared_ptr<Member> member;
  if (const auto it = members_.find(id); it != members_.end()) member = it->second;
  if (member == nullptr) {
    // What was refused may be spoken of once more before the relay hears of it.
    if (sender.uri().empty()) return absl::OkStatus();
    if (members_.size() >= kMaxMembers) {
      Refuse(id, errors::TooManySenders(kMaxMembers));
      return absl::OkStatus();
    }
    member = std::make_shared<Member>(weak_from_this(), id, parts_);
    member->uri = sender.uri();
    members_[id] = member;
  }
  if (!sender.attach_statement().empty() || member->caller == nullptr) {
    auto spoken =
        runtime_.callers->SpokenFor(call_.caller(), member->uri, sender.attach_statement());
    if (!spoken.ok()) {
      Refuse(id, spoken.status());
      return absl::OkStatus();
    }
    if (spoken->below != relay_->name) {
      Refuse(id, errors::NotAttached(member->uri));
      return absl::OkStatus();
    }
    member->caller = std::move(spoken->caller);
    member->until = spoken->until;
  }
  if (!sender.has_beat()) return absl::OkStatus();
  const absl::Status taken = TakeBeat(member, *sender.mutable_beat());
  if (!taken.ok()) {
    Refuse(id, taken);
  } else if (sender.beat().goodbye()) {
    Drop(id);
  }
  return absl::OkStatus();
}

absl::Status RelayBeatReactor::TakeBeat(const std::shared_ptr<Member>& member,
                                        v1::StreamHeartbeatsRequest& beat) {
  const Caller& caller = *member->caller;
  if (parts_.is_revoked(caller)) return errors::CallerRevoked();
  if (parts_.clock.Now() >= member->until) return errors::NotAttached(member->uri);
  return member->intake
      .Take(beat, caller.identity,
            [&](const Resource& resource) { return Authorize(caller, kOfOne, resource); },
            {.line = member, .peer = {}, .relay = relay_})
      .status();
}

void RelayBeatReactor::TakeHeard(int32_t id) {
  const auto it = members_.find(id);
  if (it == members_.end() || !it->second->intake.seat()) return;
  Member& member = *it->second;
  if (parts_.is_revoked(*member.caller)) return Refuse(id, errors::CallerRevoked());
  if (parts_.clock.Now() >= member.until) return Refuse(id, errors::NotAttached(member.uri));
  const Registry::Seat& seat = *member.intake.seat();
  parts_.registry.Beat(seat, 0, seat.sender()->clock_skew());
}

void RelayBeatReactor::Drop(int32_t id) {
  const auto it = members_.find(id);
  if (it == members_.end()) return;
  const std::shared_ptr<Member> member = it->second;
  members_.erase(it);
  if (!member->intake.seat()) return;
  if (parts_.is_revoked(*member->caller)) {
    parts_.registry.Revoked(*member->intake.seat());
  } else {
    parts_.registry.Closed(*member->intake.seat(), /*by_peer=*/false);
  }
}

void RelayBeatReactor::Refuse(int32_t id, const absl::Status& why) {
  MutexLock lock(mutex_);
  refused_.emplace_back(id, why);
  gone_.push_back(id);
  Send();
}

void RelayBeatReactor::Probe(int32_t id) {
  MutexLock lock(mutex_);
  probes_.push_back(id);
  Send();
}

void RelayBeatReactor::Answer() {
  MutexLock lock(mutex_);
  answering_ = true;
  Send();
}

// Sends what waits, unless something is on its way: then it goes after that.
void RelayBeatReactor::Send() {
  if (writing_ || ended_ || end_ || (!answering_ && refused_.empty() && probes_.empty())) return;
  response_.Clear();
  SetDuration(parts_.registry.Interval(), response_.mutable_interval());
  SetTime(parts_.clock.Now(), response_.mutable_time());
  const size_t told = std::min(refused_.size(), kMaxTold);
  for (size_t i = 0; i < told; ++i) {
    const auto& [id, why] = refused_[i];
    v1::RelayHeartbeatsResponse::Refused& refused = *response_.add_refused();
    refused.set_id(id);
    refused.set_code(static_cast<int32_t>(why.code()));
    refused.set_message(std::string(why.message()));
    refused.mutable_detail()->set_reason(ReasonOf(why));
    refused.mutable_detail()->set_next_step(NextStepOf(why));
    if (const auto delay = RetryAfterOf(why)) {
      SetDuration(*delay, refused.mutable_detail()->mutable_retry_after());
    }
  }
  refused_.erase(refused_.begin(), refused_.begin() + static_cast<ptrdiff_t>(told));
  const size_t asked = std::min(probes_.size(), kMaxTold);
  for (size_t i = 0; i < asked; ++i) response_.add_probes(probes_[i]);
  probes_.erase(probes_.begin(), probes_.begin() + static_cast<ptrdiff_t>(asked));
  answering_ = false;
  writing_ = true;
  call_.BeginWrite();
  StartWrite(&response_);
}

void RelayBeatReactor::OnWriteDone(bool ok) {
  call_.EndWrite();
  MutexLock lock(mutex_);
  writing_ = false;
  if (!ok && !end_) end_ = absl::CancelledError("the relay went away");
  if (end_) {
    const auto final = MarkEndedIfIdle();
    lock.Unlock();
    if (final) Finish(*final);
    return;
  }
  Send();
}

void RelayBeatReactor::OnCancel() { End(absl::CancelledError("the call was cancelled")); }

// A read that is out is no reason to wait: it ends with the stream.
void RelayBeatReactor::End(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (!end_) end_ = status;
  const auto final = MarkEndedIfIdle();
  lock.Unlock();
  if (final) Finish(*final);
}

// Returns what Finish has to be called with once the mutex is released; nothing if the stream does
// not end now.
std::optional<grpc::Status> RelayBeatReactor::MarkEndedIfIdle() {
  if (ended_ || writing_ || taking_) return std::nullopt;
  ended_ = true;
  return call_.Final(*end_);
}

void RelayBeatReactor::OnDone() {
  // First it is known why all of them are silent.
  if (relay_ != nullptr) parts_.registry.CloseRelay(relay_);
  for (const auto& [id, member] : members_) {
    if (member->intake.seat()) parts_.registry.Closed(*member->intake.seat(), false);
  }
  members_.clear();
  self_.reset();
}

}  // namespace muster
