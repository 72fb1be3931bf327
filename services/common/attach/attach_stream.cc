#include "services/common/attach/attach_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/version.h"

namespace muster {
namespace {

constexpr size_t kMaxLink = 1000;  // attachment.proto permits 1,024 bytes
constexpr absl::Duration kShortestLife = absl::Seconds(1);
// After a move the child signs once more.
constexpr absl::Duration kConfirmMove = absl::Seconds(2);
constexpr absl::Duration kWelcomeWithin = absl::Seconds(20);
constexpr absl::Duration kLongestTick = absl::Seconds(1);
constexpr absl::Duration kShortestInterval = absl::Milliseconds(100);
// A relay greets again when it has renewed its certificate. Each greeting is answered with a
// signature.
constexpr int kMostGreetings = 100;

}  // namespace

AttachStream::AttachStream(Parts parts, std::optional<std::string> current_relay)
    : parts_(std::move(parts)),
      current_relay_(current_relay.value_or("")),
      candidate_(current_relay.has_value()) {}

AttachStream::~AttachStream() {
  if (stream_ != nullptr) stream_->Close();
}

void AttachStream::Start(const OpenParentStream& open) {
  {
    MutexLock lock(mutex_);
    received_at_ = parts_.clock.MonotonicNow();
  }
  stream_ = open(*this);
  stream_->ReadNext();
}

bool AttachStream::Send(v1::AttachRequest message) {
  MutexLock lock(mutex_);
  if (!welcomed_at_ || ending_) return false;
  const Sent sent = Enqueue(std::move(message));
  if (sent == Sent::kFull) refused_ = true;
  return sent == Sent::kQueued;
}

Sent AttachStream::Enqueue(v1::AttachRequest message) {
  const Sent sent = stream_->Send(std::move(message));
  if (sent == Sent::kQueued) {
    sending_ = true;
    sent_at_ = parts_.clock.MonotonicNow();
  }
  return sent;
}

void AttachStream::ReadOn() {
  {
    MutexLock lock(mutex_);
    paused_ = true;  // before the question: the delegate may change its mind immediately
  }
  if (parts_.delegate.MayReadNext()) ResumeReading();
}

void AttachStream::ResumeReading() {
  {
    MutexLock lock(mutex_);
    if (!std::exchange(paused_, false)) return;
    received_at_ = parts_.clock.MonotonicNow();
  }
  stream_->ReadNext();
}

bool AttachStream::welcomed() const {
  MutexLock lock(mutex_);
  return welcomed_at_ && !ending_;
}

std::optional<absl::Duration> AttachStream::welcomed_at() const {
  MutexLock lock(mutex_);
  return welcomed_at_;
}

std::string AttachStream::relay() const {
  MutexLock lock(mutex_);
  return greeting_.relay();
}

absl::Duration AttachStream::tick() const {
  MutexLock lock(mutex_);
  return welcomed_at_ ? std::min(interval_ / 2, kLongestTick) : kLongestTick;
}

void AttachStream::Tick() {
  const absl::Duration now = parts_.clock.MonotonicNow();
  bool renew = false;
  absl::Status silence;
  {
    MutexLock lock(mutex_);
    if (ending_) return;
    if (!paused_ && now - received_at_ > (welcomed_at_ ? 3 * interval_ : kWelcomeWithin)) {
      silence = absl::DeadlineExceededError(welcomed_at_ ? "the relay fell silent"
                                                         : "the relay did not answer");
    } else if (welcomed_at_ && now > renew_at_) {
      renew = true;
    } else if (welcomed_at_ && !sending_ && now - sent_at_ >= interval_) {
      v1::AttachRequest heartbeat;
      ToProto(parts_.clock.Now(), heartbeat.mutable_beat()->mutable_time());
      Enqueue(std::move(heartbeat));
    }
  }
  if (!silence.ok()) return End(silence);
  if (!renew) return;
  if (const absl::Status sent = SendHello(); !sent.ok()) End(sent);
}

void AttachStream::End(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(ending_, true)) return;
  }
  stream_->Cancel(why);
}

std::optional<absl::Status> AttachStream::end() const {
  MutexLock lock(mutex_);
  return end_;
}

bool AttachStream::offered() const {
  MutexLock lock(mutex_);
  return offer_ && !ending_;
}

void AttachStream::Adopt() {
  v1::AttachResponse::Welcome welcome;
  {
    MutexLock lock(mutex_);
    if (ending_ || !offer_) return;
    candidate_ = false;
    received_at_ = parts_.clock.MonotonicNow();
    welcome = *std::exchange(offer_, std::nullopt);
  }
  if (const absl::Status handled = HandleWelcome(welcome); !handled.ok()) return End(handled);
  {
    // The former parent may have signed for later meanwhile, and relays believe the last statement.
    MutexLock lock(mutex_);
    renew_at_ = std::min(renew_at_, received_at_ + kConfirmMove);
  }
  ReadOn();
}

void AttachStream::OnMessage(v1::AttachResponse message) {
  bool candidate = false;
  {
    MutexLock lock(mutex_);
    received_at_ = parts_.clock.MonotonicNow();
    candidate = candidate_;
  }
  // The messages after an offer are for the delegate: Adopt reads them, maybe before this returns.
  if (candidate && message.has_welcome()) {
    return HandleOffer(std::move(*message.mutable_welcome()));
  }
  if (const absl::Status handled = Handle(std::move(message)); !handled.ok()) return End(handled);
  candidate ? stream_->ReadNext() : ReadOn();
}

void AttachStream::OnWritable() {
  bool notify = false;
  {
    MutexLock lock(mutex_);
    sending_ = false;
    notify = std::exchange(refused_, false) && !ending_;
  }
  if (notify) parts_.delegate.OnWritable();
}

void AttachStream::OnEnd(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    const bool no_reason = status.ok() || (absl::IsCancelled(status) && !ending_);
    ending_ = true;
    end_ = no_reason ? absl::UnavailableError("the relay ended the stream") : status;
  }
  parts_.changed();
}

absl::Status AttachStream::Handle(v1::AttachResponse message) {
  switch (message.message_case()) {
    case v1::AttachResponse::kGreeting:
      return HandleGreeting(std::move(*message.mutable_greeting()));
    case v1::AttachResponse::kWelcome:
      return HandleWelcome(message.welcome());
    case v1::AttachResponse::kBeat:
    case v1::AttachResponse::MESSAGE_NOT_SET:  // of a newer version
      return absl::OkStatus();
    default:
      break;
  }
  {
    MutexLock lock(mutex_);
    if (!welcomed_at_) return errors::RelayRefused("it sent a message before its welcome");
  }
  return parts_.delegate.OnMessage(std::move(message));
}

absl::Status AttachStream::HandleGreeting(v1::AttachResponse::Greeting greeting) {
  RETURN_IF_ERROR(stream_->CheckGreeting(greeting));
  {
    MutexLock lock(mutex_);
    if (++greetings_ > kMostGreetings) return errors::RelayRefused("it greets without end");
    greeting_ = std::move(greeting);
    if (candidate_ && greeting_.relay() == current_relay_) {
      return absl::AlreadyExistsError("it is the same relay at another address");
    }
  }
  return SendHello();
}

absl::Status AttachStream::SendHello() {
  v1::AttachResponse::Greeting greeting;
  {
    MutexLock lock(mutex_);
    greeting = greeting_;
  }
  ASSIGN_OR_RETURN(auto statement, parts_.sign(greeting));
  const absl::Duration life = FromProto(statement.expire_time()) - parts_.clock.Now();
  v1::AttachRequest message;
  v1::AttachRequest::Hello& hello = *message.mutable_hello();
  *hello.mutable_statement() = std::move(statement);
  hello.set_instance_id(parts_.instance);
  ToProto(parts_.clock.MonotonicNow() - parts_.started, hello.mutable_uptime());
  hello.set_version(std::string(kVersion));
  hello.set_is_relay(parts_.options.is_relay);
  for (const std::string& target : parts_.options.relay_targets) hello.add_relay_targets(target);
  hello.set_link(parts_.link().substr(0, kMaxLink));
  hello.set_revocations_version(parts_.delegate.RevocationsVersion());
  MutexLock lock(mutex_);
  // A statement that does not fit into the queue is signed again at the next tick.
  if (Enqueue(std::move(message)) != Sent::kFull) {
    renew_at_ = parts_.clock.MonotonicNow() + std::max(life / 2, kShortestLife);
  }
  return absl::OkStatus();
}

void AttachStream::HandleOffer(v1::AttachResponse::Welcome offer) {
  if (const absl::Status acceptable = CheckOffer(offer); !acceptable.ok()) return End(acceptable);
  {
    MutexLock lock(mutex_);
    offer_ = std::move(offer);
  }
  parts_.changed();
}

absl::Status AttachStream::HandleWelcome(const v1::AttachResponse::Welcome& welcome) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = !welcomed_at_;
    if (first) welcomed_at_ = parts_.clock.MonotonicNow();
    interval_ = std::max(FromProto(welcome.interval()), kShortestInterval);
  }
  RETURN_IF_ERROR(parts_.delegate.OnWelcome(welcome, first));
  if (first) parts_.changed();
  return absl::OkStatus();
}

// An attachment is given up only for a better one.
absl::Status AttachStream::CheckOffer(const v1::AttachResponse::Welcome& welcome) const {
  if (!welcome.connected()) {
    return absl::UnavailableError("the relay has no upstream connection");
  }
  const auto& path = welcome.path();
  const bool descendant = std::any_of(path.begin(), path.end(), [this](const std::string& relay) {
    return absl::EndsWith(parts_.options.uri, absl::StrCat("/relay/", relay));
  });
  return descendant ? absl::FailedPreconditionError("the relay is a descendant of this one")
                    : absl::OkStatus();
}

}  // namespace muster
