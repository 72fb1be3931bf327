#include "services/agent/jobs/finished_jobs.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/identity/command_authority.h"
#include "services/common/identity/signed_command.h"

namespace muster {
namespace {

constexpr absl::Duration kRemember = absl::Hours(1);

}  // namespace

void FinishedJobs::Add(const std::string& job, absl::Time not_after) {
  const absl::Duration after = kCommandClockSlack + kRemember;
  jobs_[job] = KeepUntil(not_after + after, kCommandValidity + after, clock_);
}

bool FinishedJobs::IsUnreadable(const std::string& job) const {
  const auto found = jobs_.find(job);
  return found != jobs_.end() && !found->second;
}

void FinishedJobs::Forget() {
  std::erase_if(jobs_, [&](const auto& entry) {
    const auto& [job, until] = entry;
    if (!until || !until->IsOver(clock_)) return false;
    const absl::Status s = RemoveTree(ops_, absl::StrCat(folder_, "/", job));
    if (!s.ok()) Log(LogLevel::kWarning, "a job cannot be removed", {{"job", job}, {"error", s}});
    return s.ok();
  });
}

}  // namespace muster
