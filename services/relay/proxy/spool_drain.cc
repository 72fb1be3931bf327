#include "services/relay/proxy/spool_drain.h"

#include <string>
#include <utility>

#include "absl/random/random.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"

namespace muster {
namespace {

// Several, because one may send a large result over a slow connection.
constexpr int kThreads = 3;

// The wait without events.
constexpr absl::Duration kRest = absl::Seconds(2);
constexpr absl::Duration kBetweenSweeps = absl::Seconds(5);

// Returns whether another attempt would fail as well, because the result itself is rejected. An
// error that concerns this relay is temporary.
bool IsFinal(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      // An error without a reason is from a service that may not know this relay yet.
      return !reason.empty() && reason != "NOT_ATTACHED" && reason != "ROLE_NOT_ALLOWED";
    case absl::StatusCode::kNotFound:
      return reason == "RUN_NOT_FOUND";
    case absl::StatusCode::kUnauthenticated:
      return reason == "INVALID_SIGNATURE";
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
      return !reason.empty();
    default:
      return false;
  }
}

}  // namespace

SpoolDrain::SpoolDrain(Spool& spool, Upstream& upstream, ResultSender& sender, const Clock& clock)
    : spool_(spool), upstream_(upstream), sender_(sender), clock_(clock) {
  watch_ = upstream.OnChange([this] { Wake(); });
  spool.set_on_complete([this] { Wake(); });
}

SpoolDrain::~SpoolDrain() {
  watch_.reset();
  for (std::jthread& thread : threads_) thread.request_stop();
}

void SpoolDrain::Start() {
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

void SpoolDrain::Wake() {
  MutexLock lock(mutex_);
  ++events_;
  wake_.NotifyAll();
}

void SpoolDrain::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const absl::Duration rest = RunOnce(stop);
    if (rest <= absl::ZeroDuration()) continue;
    MutexLock lock(mutex_);
    const uint64_t seen = events_;
    wake_.WaitFor(mutex_, stop, rest,
                  [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return events_ != seen; });
  }
}

void SpoolDrain::SweepIfDue() {
  {
    MutexLock lock(mutex_);
    const absl::Duration now = clock_.MonotonicNow();
    if (swept_at_ && now - *swept_at_ < kBetweenSweeps) return;
    swept_at_ = now;
  }
  spool_.Sweep();
}

absl::Duration SpoolDrain::RunOnce(const std::stop_token& stop) {
  SweepIfDue();
  if (!upstream_.connected()) return kRest;
  const auto delivery = spool_.Dequeue();
  if (!delivery) return kRest;
  const absl::Status status =
      delivery->expired ? sender_.ReportExpired(*delivery, stop) : sender_.Deliver(*delivery, stop);
  if (!status.ok() && !IsFinal(status)) return Requeue(*delivery, status);
  Finish(*delivery, status);
  return absl::ZeroDuration();
}

void SpoolDrain::Finish(const SpoolDelivery& delivery, const absl::Status& status) {
  const v1::ResultKey& key = delivery.header.description().key();
  const bool committed = status.ok() && !delivery.expired;
  Log(committed ? LogLevel::kInfo : LogLevel::kWarning,
      committed     ? "a spooled result is committed"
      : status.ok() ? "a spooled result has expired"
                    : "a spooled result was rejected upstream",
      {{"run", key.run()},
       {"plugin", key.plugin()},
       {"node", key.node()},
       {"why", status.ok() ? delivery.why : status.ToString()}});
  spool_.Finish(delivery, committed          ? "committed"
                          : delivery.lost    ? "lost"
                          : delivery.expired ? "expired"
                                             : "refused");
}

// Returns how long to wait before the next delivery.
absl::Duration SpoolDrain::Requeue(const SpoolDelivery& delivery, const absl::Status& status) {
  absl::BitGen random;
  const absl::Duration spread = absl::Milliseconds(absl::Uniform(random, 200, 3000));
  spool_.Requeue(delivery, RetryAfterOf(status).value_or(absl::Seconds(1)) + spread);
  const v1::ResultKey& key = delivery.header.description().key();
  Log(LogLevel::kInfo, "the delivery of a spooled result failed and is repeated",
      {{"run", key.run()}, {"plugin", key.plugin()}, {"node", key.node()}, {"error", status}});
  // Without a connection every other delivery would fail as well.
  return absl::IsUnavailable(status) ? spread : absl::ZeroDuration();
}

}  // namespace muster
