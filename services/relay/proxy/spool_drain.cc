#include "services/relay/proxy/spool_drain.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"

namespace muster {
namespace {

// The wait without events.
constexpr absl::Duration kRest = absl::Seconds(2);
constexpr absl::Duration kBetweenSweeps = absl::Seconds(5);

// The reasons for which the aggregator rejects the result itself, so that each attempt would fail.
// Any other error is temporary: it may concern this relay, a clock or a disk.
constexpr std::array<std::string_view, 11> kFinalReasons = {
    "INVALID_NAME",       "INVALID_SIGNATURE", "PAIR_NOT_PLANNED",
    "RESULT_CONFLICT",    "RESULT_TOO_LARGE",  "REVOKED",
    "RUN_CANCELLED",      "RUN_NOT_FOUND",     "RUN_SEALED",
    "SIGNATURE_REQUIRED", "TEXT_TOO_LONG"};

// Returns whether another attempt would fail as well. A wrong clock is temporary until the time of
// the result is over.
bool IsFinal(const absl::Status& status, const SpoolDelivery& delivery) {
  const std::string reason = ReasonOf(status);
  if (reason == "PROOF_TOO_OLD") return delivery.expired && !delivery.lost;
  return absl::c_linear_search(kFinalReasons, reason);
}

// Returns whether other bytes arrived than the spool announced.
bool IsMismatch(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "CRC_MISMATCH" || reason == "DIGEST_MISMATCH" || reason == "SIZE_MISMATCH";
}

}  // namespace

SpoolDrain::SpoolDrain(const Environment& environment)
    : environment_(environment),
      backoff_(kDeliveryBackoff),
      sweep_(environment.timers, environment.background, [this] { Sweep(); }) {
  watch_ = environment_.upstream.OnChange([this] { HandleUpstreamChange(); });
  environment_.spool.set_on_complete([this] {
    MutexLock lock(mutex_);
    Wake();
  });
}

SpoolDrain::~SpoolDrain() {
  watch_.reset();
  sweep_.Stop();
  stop_.request_stop();
  std::vector<std::unique_ptr<ScheduledTask>> lanes;
  {
    MutexLock lock(mutex_);
    lanes.swap(lanes_);
  }
  for (const auto& lane : lanes) lane->Stop();
}

void SpoolDrain::Start() {
  sweep_.RunAfter(absl::ZeroDuration());
  MutexLock lock(mutex_);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    lanes_.push_back(std::make_unique<ScheduledTask>(environment_.timers, environment_.deliveries,
                                                     [this, lane] { RunLane(lane); }));
    lanes_.back()->RunAfter(absl::ZeroDuration());
  }
}

void SpoolDrain::HandleUpstreamChange() {
  environment_.spool.ResetBackoff();
  MutexLock lock(mutex_);
  backoff_.Reset();
  not_before_ = -absl::InfiniteDuration();
  Wake();
}

void SpoolDrain::Wake() {
  ++events_;
  for (const auto& lane : lanes_) lane->RunAfter(UntilNextDelivery());
}

absl::Duration SpoolDrain::UntilNextDelivery() const {
  return std::max(not_before_ - environment_.clock.MonotonicNow(), absl::ZeroDuration());
}

void SpoolDrain::RunLane(size_t lane) {
  uint64_t seen = 0;
  absl::Duration rest;
  while (rest <= absl::ZeroDuration() && !stop_.stop_requested()) {
    {
      MutexLock lock(mutex_);
      seen = events_;
    }
    rest = RunOnce(stop_.get_token());
  }
  MutexLock lock(mutex_);
  if (lanes_.empty()) return;  // the drain stops
  if (events_ != seen) rest = absl::ZeroDuration();
  lanes_[lane]->RunAfter(std::max(rest, UntilNextDelivery()));
}

void SpoolDrain::Sweep() {
  environment_.spool.Sweep();
  sweep_.RunAfter(kBetweenSweeps);
}

absl::Duration SpoolDrain::RunOnce(const std::stop_token& stop) {
  if (!environment_.upstream.connected()) return kRest;
  auto delivery = environment_.spool.Dequeue();
  if (!delivery) return kRest;
  const absl::Status status = Send(*delivery, stop);
  if (!status.ok() && !IsFinal(status, *delivery)) return Requeue(*delivery, status);
  Finish(*delivery, status);
  return absl::ZeroDuration();
}

// Bytes that were damaged on the disk are refused by each delivery: the loss is reported instead.
absl::Status SpoolDrain::Send(SpoolDelivery& delivery, const std::stop_token& stop) {
  if (!delivery.expired) {
    const absl::Status status = environment_.sender.Deliver(delivery, stop);
    if (!IsMismatch(status)) return status;
    environment_.spool.CheckContent(&delivery);
    if (!delivery.lost) return status;
  }
  return environment_.sender.ReportExpired(delivery, stop);
}

void SpoolDrain::Finish(const SpoolDelivery& delivery, const absl::Status& status) {
  const v1::ResultKey& key = delivery.header.description().key();
  const bool committed = status.ok() && !delivery.expired;
  if (committed) {
    Log(LogLevel::kInfo, "a spooled result is committed",
        {{"run", key.run()}, {"plugin", key.plugin()}, {"node", key.node()}});
  } else {
    Log(LogLevel::kWarning,
        !status.ok()    ? "a spooled result was rejected upstream"
        : delivery.lost ? "a spooled result is lost"
                        : "a spooled result has expired",
        {{"run", key.run()},
         {"plugin", key.plugin()},
         {"node", key.node()},
         {"why", status.ok() ? delivery.why : status.ToString()}});
  }
  {
    MutexLock lock(mutex_);
    backoff_.Reset();
  }
  environment_.spool.Finish(delivery, committed          ? "committed"
                                      : delivery.lost    ? "lost"
                                      : delivery.expired ? "expired"
                                                         : "refused");
}

// Returns how long to wait before the next delivery.
absl::Duration SpoolDrain::Requeue(const SpoolDelivery& delivery, const absl::Status& status) {
  environment_.spool.Requeue(delivery, status);
  const v1::ResultKey& key = delivery.header.description().key();
  LogLimited(
      LogLevel::kInfo, "the delivery of a spooled result failed and is repeated", key.node(),
      {{"run", key.run()}, {"plugin", key.plugin()}, {"node", key.node()}, {"error", status}});
  MutexLock lock(mutex_);
  // Without a connection every other delivery would fail as well.
  if (absl::IsUnavailable(status)) {
    const absl::Duration wait = backoff_.Next(std::nullopt);
    not_before_ = std::max(not_before_, environment_.clock.MonotonicNow() + wait);
    return wait;
  }
  backoff_.Reset();
  return absl::ZeroDuration();
}

}  // namespace muster
