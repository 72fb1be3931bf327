#include "services/aggregator/verify/scrubber.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr absl::Duration kFirst = absl::Seconds(5);   // after the start
constexpr absl::Duration kRetry = absl::Minutes(1);   // after an error
constexpr absl::Duration kSaving = absl::Minutes(1);  // of the position
constexpr int64_t kMaxStep = int64_t{1} << 20;        // bytes: a step occupies a shared thread
constexpr int64_t kObjectCost = 4096;                 // bytes that reading a record stands for
constexpr std::string_view kEnded = "ended ";         // a position between two passes

}  // namespace

Scrubber::Scrubber(StateStore& store, BlobStore& blobs, const Clock& clock, TimerService& timers,
                   Executor& executor, Options options, Metrics& metrics)
    : store_(store),
      blobs_(blobs),
      clock_(clock),
      options_(std::move(options)),
      bytes_(metrics.AddCounter("muster_scrubbed_bytes_total",
                                "Stored bytes that were verified in the background.")),
      task_(timers, executor, [this] { Run(); }) {
  metrics.AddSampledGauge("muster_damaged_results", "Stored results and archives that are damaged.",
                          [this] {
                            const auto damaged = store_.DamagedResults();
                            return damaged.ok() ? static_cast<double>(*damaged)
                                                : std::numeric_limits<double>::quiet_NaN();
                          });
}

void Scrubber::Start() {
  if (options_.rate > 0) task_.RunAfter(kFirst);
}

void Scrubber::Run() {
  const auto next = Advance();
  if (!next.ok()) {
    Log(LogLevel::kError, "the verification of the store failed and is tried again",
        {{"error", next.status()}});
  }
  task_.RunAfter(next.ok() ? *next : kRetry);
}

// Damage that it reads may have been found by a verification, and declined by the node, before it
// is recorded here. And a node whose answer is known is not asked in each pass.
void Scrubber::BeginPass() {
  cursor_.emplace(store_, blobs_, clock_, options_.actor, "",
                  VerifyOptions{.read_failures = options_.read_failures, .keep_declined = true});
}

// Does one step; returns the time until the next one.
absl::StatusOr<absl::Duration> Scrubber::Advance() {
  if (!resumed_) RETURN_IF_ERROR(Resume());
  if (sweep_) return Sweep();
  const absl::Time now = clock_.Now();
  if (!cursor_) {
    if (now < ended_at_ + options_.every) return ended_at_ + options_.every - now;
    BeginPass();
  }
  ASSIGN_OR_RETURN(const VerifyStep step, cursor_->Step(std::min(kMaxStep, options_.rate)));
  bytes_.Add(static_cast<double>(step.bytes));
  for (const DamagedObject& object : step.damaged) {
    Log(LogLevel::kError, "a stored result is damaged",
        {{"run", object.key.run},
         {"plugin", object.key.plugin},
         {"node", object.key.node},
         {"damage", object.damage}});
  }
  if (step.end) sweep_.emplace(store_, blobs_);
  if (now - saved_at_ >= kSaving) RETURN_IF_ERROR(SavePosition(cursor_->position()));
  return Cost(step.bytes, step.objects);
}

// Returns the time that the work takes at the rate.
absl::Duration Scrubber::Cost(int64_t bytes, int64_t objects) const {
  const auto cost = static_cast<double>(bytes + objects * kObjectCost);
  return absl::Seconds(cost / static_cast<double>(options_.rate));
}

absl::Status Scrubber::Resume() {
  ASSIGN_OR_RETURN(const auto position, store_.ScrubPosition());
  saved_at_ = clock_.Now();
  resumed_ = true;
  int64_t ended = 0;
  if (position.starts_with(kEnded)) {
    if (absl::SimpleAtoi(position.substr(kEnded.size()), &ended)) {
      // A clock that was set back must not postpone the next pass.
      ended_at_ = std::min(absl::FromUnixMicros(ended), clock_.Now());
    }
  } else if (!position.empty()) {
    BeginPass();
    cursor_->SeekTo(position);
  }
  return absl::OkStatus();
}

// Sweeps one run; the pass ends with the last one.
absl::StatusOr<absl::Duration> Scrubber::Sweep() {
  ASSIGN_OR_RETURN(const BlobSweep::Step step, sweep_->Advance());
  if (!step.end) return Cost(0, 1 + step.listed);
  sweep_.reset();
  cursor_.reset();
  ended_at_ = clock_.Now();
  RETURN_IF_ERROR(SavePosition(absl::StrCat(ToAbsl(kEnded), absl::ToUnixMicros(ended_at_))));
  return options_.every;
}

absl::Status Scrubber::SavePosition(std::string position) {
  RETURN_IF_ERROR(store_.ApplyAndWait(SaveScrubPosition{std::move(position)}).status());
  saved_at_ = clock_.Now();
  return absl::OkStatus();
}

}  // namespace muster
