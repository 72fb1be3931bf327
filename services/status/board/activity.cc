#include "services/status/board/activity.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/hash/hash.h"
#include "services/status/board/progress.h"

namespace muster {
namespace {

size_t HashOfTexts(const v1::Activity& activity) {
  const v1::Fault& fault = activity.fault();
  return absl::HashOf(activity.message(), activity.has_fault(), fault.check(), fault.address(),
                      fault.message());
}

// Returns the phase after the activity. One without a phase does not change it.
v1::Phase PhaseAfter(const v1::Activity& activity, v1::Phase before) {
  if (activity.phase() != v1::PHASE_UNSPECIFIED) return activity.phase();
  return before == v1::PHASE_UNSPECIFIED ? v1::PHASE_WORKING : before;
}

int64_t FailuresOf(const v1::Progress& progress) {
  return progress.failures_size() + progress.omitted_failures();
}

int64_t ErrorsOf(const v1::Progress& progress) {
  return progress.errors_size() + progress.omitted_errors();
}

}  // namespace

bool ApplyActivity(const v1::Activity& activity, Work& work) {
  const v1::Phase phase = PhaseAfter(activity, work.phase);
  const size_t texts = HashOfTexts(activity);
  const bool same = !work.abandoned && phase == work.phase && texts == work.received_activity;
  work.received_activity = texts;
  work.abandoned = false;
  work.phase = phase;
  work.message = activity.message();
  work.fault = activity.has_fault() ? std::make_unique<v1::Fault>(activity.fault()) : nullptr;
  return !same;
}

bool CanWork(const Work& work) {
  return work.fault == nullptr && work.phase != v1::PHASE_CHECKING &&
         work.phase != v1::PHASE_BLOCKED;
}

bool ApplyReport(const v1::ReportProgressRequest& report, absl::Time now, Work& work) {
  if (work.progress == nullptr) work.progress = std::make_unique<v1::Progress>();
  const v1::Progress before = *work.progress;
  ApplyProgress(report, now, work.progress.get());
  const v1::Progress& after = *work.progress;
  const size_t message = absl::HashOf(after.message());
  const bool same_message = message == std::exchange(work.received_report, message);
  return !work.motion.moved() || after.completed() != before.completed() ||
         after.total() != before.total() || !same_message ||
         FailuresOf(after) != FailuresOf(before) || ErrorsOf(after) != ErrorsOf(before);
}

}  // namespace muster
