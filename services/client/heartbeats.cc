#include "services/client/heartbeats.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/mutex.h"
#include "services/common/errors/client.h"

namespace muster::client {
namespace {

constexpr std::string_view kDuplicateAgent = "DUPLICATE_AGENT";
// For so long a stop waits until the connection takes the goodbye.
constexpr absl::Duration kGoodbyeWait = absl::Milliseconds(500);

// Counts for the process: all its clients are one sender.
int64_t NextSequence() {
  static std::atomic<int64_t> sequence{0};
  return ++sequence;
}

absl::Duration Uptime() {
  static const absl::Duration start = SystemClock().MonotonicNow();
  return SystemClock().MonotonicNow() - start;
}

}  // namespace

Heartbeats::Heartbeats(SenderActivity& activity, HeartbeatDialer dial,
                       std::function<void(const absl::Status&)> watch)
    : activity_(activity), dial_(std::move(dial)), watch_(std::move(watch)) {
  Uptime();
  activity_.Listen([this] {
    MutexLock lock(mutex_);
    ++events_;
    changed_.NotifyAll();
  });
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

Heartbeats::~Heartbeats() {
  thread_.request_stop();
  thread_.join();
  activity_.Listen(nullptr);
}

absl::Status Heartbeats::status() const {
  MutexLock lock(mutex_);
  return status_;
}

std::optional<absl::Duration> Heartbeats::clock_offset() const {
  MutexLock lock(mutex_);
  return clock_offset_;
}

void Heartbeats::OnAnswer(const HeartbeatAnswer& answer) {
  MutexLock lock(mutex_);
  ++events_;
  changed_.NotifyAll();
  if (answer.time) clock_offset_ = *answer.time - SystemClock().Now();
  if (answer.probe) {
    schedule_.Probed();
    return;
  }
  schedule_.Answered(answer.interval);
  answered_ = true;
  if (answer.sequence >= sent_sequence_) activity_.HandleAck(sent_version_);
}

void Heartbeats::OnWritable() {
  MutexLock lock(mutex_);
  writable_ = true;
  ++events_;
  changed_.NotifyAll();
}

void Heartbeats::OnEnd(const absl::Status& status) {
  MutexLock lock(mutex_);
  ended_ = status;
  ++events_;
  changed_.NotifyAll();
}

void Heartbeats::SetStatus(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    status_ = status;
    const bool duplicate = ReasonOf(status) == kDuplicateAgent;
    if (lost_ == !status.ok() && duplicate_ == duplicate) return;
    lost_ = !status.ok();
    duplicate_ = duplicate;
  }
  if (watch_) watch_(status);
}

void Heartbeats::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const absl::Status why = RunConnection(stop);
    if (stop.stop_requested() || !AfterEnd(why, stop)) return;
  }
}

bool Heartbeats::AfterEnd(const absl::Status& why, const std::stop_token& stop) {
  // A server without support for heartbeats is not an error.
  if (why.code() == absl::StatusCode::kUnimplemented) {
    {
      MutexLock lock(mutex_);
      status_ = why;
    }
    return WaitFor(unserved_.Next(std::nullopt), stop);
  }
  SetStatus(why);
  const bool refused = why.code() == absl::StatusCode::kPermissionDenied ||
                       why.code() == absl::StatusCode::kInvalidArgument;
  return WaitFor(refused ? unserved_.Next(std::nullopt) : reconnect_.Next(RetryAfterOf(why)), stop);
}

absl::Status Heartbeats::RunConnection(const std::stop_token& stop) {
  {
    MutexLock lock(mutex_);
    schedule_.Opened(SystemClock().MonotonicNow());
    ended_.reset();
    writable_ = send_all_ = true;
    answered_ = false;
  }
  const std::unique_ptr<HeartbeatConnection> connection = dial_(*this, stop);
  absl::Duration abandon_at = absl::InfiniteDuration();  // after a stop
  MutexLock lock(mutex_);
  while (true) {
    if (std::exchange(answered_, false)) {
      lock.Unlock();
      reconnect_.Reset();
      unserved_.Reset();
      SetStatus(absl::OkStatus());
      lock.Lock();
    }
    if (ended_) return ended_->ok() ? errors::HeartbeatsEnded() : *ended_;
    const bool changed = send_all_ || activity_.Get().version != sent_version_;
    const absl::Duration now = SystemClock().MonotonicNow();
    if (now >= schedule_.GiveUp()) return errors::HeartbeatsUnanswered();
    if (writable_ && (stop.stop_requested() || now >= schedule_.Due(changed))) {
      const bool goodbye = stop.stop_requested();
      SendDue(*connection, goodbye);
      if (goodbye) return absl::OkStatus();
      continue;
    }
    const auto changes = [this, seen = events_]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return events_ != seen; };
    if (stop.stop_requested()) {
      // The message before the goodbye is still in transit, or the connection takes nothing.
      abandon_at = std::min(abandon_at, now + kGoodbyeWait);
      if (now >= abandon_at) return absl::OkStatus();
      changed_.WaitFor(mutex_, std::stop_token(), abandon_at - now, changes);
      continue;
    }
    const absl::Duration wake =
        writable_ ? std::min(schedule_.GiveUp(), schedule_.Due(changed)) : schedule_.GiveUp();
    changed_.WaitFor(mutex_, stop, std::min(wake - now, absl::Hours(1)), changes);
  }
}

void Heartbeats::SendDue(HeartbeatConnection& connection, bool goodbye) {
  Heartbeat heartbeat;
  heartbeat.sequence = NextSequence();
  heartbeat.uptime = Uptime();
  heartbeat.time = SystemClock().Now();
  heartbeat.goodbye = goodbye;
  const Activity activity = activity_.Get();
  const bool changed = send_all_ || activity.version != sent_version_;
  if (changed) {
    heartbeat.activity = activity;
    sent_version_ = activity.version;
    sent_sequence_ = heartbeat.sequence;
  }
  send_all_ = writable_ = false;
  schedule_.Sent(SystemClock().MonotonicNow(), changed);
  mutex_.Unlock();
  connection.Send(heartbeat);
  mutex_.Lock();
}

}  // namespace muster::client
