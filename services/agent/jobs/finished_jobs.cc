#include "services/agent/jobs/finished_jobs.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/identity/command_authority.h"
#include "services/common/identity/signed_command.h"

namespace muster {
namespace {

// The time after the latest end of a job, and the least one from now on: for so long its command
// may be valid if the clock is wrong.
absl::Duration KeepAfter() { return kCommandClockSlack + absl::Hours(1); }
absl::Duration KeepAtLeast() { return kCommandValidity + KeepAfter(); }

}  // namespace

void FinishedJobs::Add(const std::string& job, absl::Time latest_end, bool started) {
  jobs_[job] = Job{KeepUntil(latest_end + KeepAfter(), KeepAtLeast(), clock_), started};
}

bool FinishedJobs::IsUnreadable(const std::string& job) const {
  const auto found = jobs_.find(job);
  return found != jobs_.end() && !found->second;
}

void FinishedJobs::Forget() {
  ForgetIf([this](const KeepUntil& keep) { return keep.IsOver(clock_); });
}

void FinishedJobs::ForgetBefore(absl::Time time) {
  ForgetIf([time](const KeepUntil& keep) { return keep.until() < time; });
}

void FinishedJobs::ForgetIf(absl::FunctionRef<bool(const KeepUntil&)> is_over) {
  std::erase_if(jobs_, [&](const auto& entry) {
    const auto& [job, finished] = entry;
    if (!finished || !is_over(finished->keep)) return false;
    const std::string folder = absl::StrCat(folder_, "/", job);
    if (prepare_) prepare_(folder);
    const absl::Status s = RemoveTree(ops_, folder);
    if (!s.ok()) Log(LogLevel::kWarning, "a job cannot be removed", {{"job", job}, {"error", s}});
    return s.ok();
  });
}

}  // namespace muster
