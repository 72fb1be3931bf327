#include "services/agent/jobs/finished_jobs.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/identity/signed_command.h"

namespace muster {
namespace {

constexpr absl::Duration kRemember = absl::Hours(1);

}  // namespace

void FinishedJobs::Forget(absl::Time now) {
  std::erase_if(jobs_, [&](const auto& entry) {
    const auto& [job, not_after] = entry;
    if (now < not_after + kCommandClockSlack + kRemember) return false;
    const absl::Status s = RemoveTree(ops_, absl::StrCat(folder_, "/", job));
    if (!s.ok()) Log(LogLevel::kWarning, "a job cannot be removed", {{"job", job}, {"error", s}});
    return s.ok();
  });
}

}  // namespace muster
