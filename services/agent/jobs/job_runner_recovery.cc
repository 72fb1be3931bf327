// The start of JobRunner with the jobs of an earlier process, and what those have left.
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/agent/jobs/build_command.h"
#include "services/agent/jobs/container_sweep.h"
#include "services/agent/jobs/deployment_state.h"
#include "services/agent/jobs/job_recovery.h"
#include "services/agent/jobs/job_runner.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace muster {

absl::Status JobRunner::Recover() {
  RETURN_IF_ERROR(MakeFolders(PosixFileOps(), folder_));
  ASSIGN_OR_RETURN(const auto entries, PosixFileOps().List(folder_));
  RecoverAll(entries);
  SweepSecrets();
  return absl::OkStatus();
}

void JobRunner::RecoverAll(const std::vector<FolderEntry>& entries) {
  MutexLock lock(mutex_);
  for (const FolderEntry& entry : entries) {
    if (entry.type != FileType::kFolder) continue;
    const absl::Status status = RecoverOne(entry.name);
    if (status.ok()) continue;
    Log(LogLevel::kError, "a job cannot be recovered; trying again",
        {{"job", entry.name}, {"error", status}});
    unrecovered_.emplace(entry.name, false);
  }
}

absl::Status JobRunner::RecoverOne(const std::string& id) {
  auto found = RecoverJob(PosixFileOps(), folder_, id, options_.trust.node);
  if (absl::IsDataLoss(found.status())) {
    // It does not stop the agent, and does not run again. Its folder remains for an operator.
    Log(LogLevel::kError, "a job cannot be read; it is not run again",
        {{"job", id}, {"error", found.status()}});
    finished_.AddUnreadable(id);
    return absl::OkStatus();
  }
  if (!found.ok()) return found.status();
  if (*found) Remember(id, *std::move(found));
  return absl::OkStatus();
}

void JobRunner::RetryRecovery() {
  if (unrecovered_.empty() || SystemClock().MonotonicNow() < recover_at_) return;
  recover_at_ = SystemClock().MonotonicNow() + recover_backoff_.Next(std::nullopt);
  for (const auto& [id, was_cancelled] : std::map(unrecovered_)) {
    if (const absl::Status status = RecoverOne(id); !status.ok()) {
      LogLimited(LogLevel::kError, "a job cannot be recovered; trying again", "",
                 {{"job", id}, {"error", status}});
      continue;
    }
    unrecovered_.erase(id);
    if (was_cancelled) CancelJob(id);
  }
  on_records_();
}

void JobRunner::Remember(const std::string& id, std::unique_ptr<NodeJobFolder> folder) {
  const bool ended = folder->done() || folder->log()->has_final();
  if (ended && (folder->has_deployment() || folder->has_build())) ended_deployments_.insert(id);
  if (folder->done()) {
    return finished_.Add(id, folder->latest_end(), folder->has_started());
  }
  const int64_t size = folder->log()->size();
  quota_.Reserve(size);
  Job& job = AddJob(id, std::move(folder));
  job.spooled = size;
  if (ended || !job.folder->container()) return;
  job.plan = job.folder->container()->plan;
  Begin(job);
}

// Removes the containers that a job left when Docker did not answer, and those of jobs that had
// ended when they were recovered.
void JobRunner::Sweep() {
  sweep_.RunAfter(options_.sweep_every);
  SweepSecrets();
  if (access(docker_.socket().c_str(), F_OK) != 0) return;  // a node without Docker
  std::set<std::string> ended;
  {
    MutexLock lock(mutex_);
    ended = ended_deployments_;
  }
  const auto in_use = [this](const std::string& id) { return MayRun(id); };
  const absl::Status builds =
      SweepBuilds(docker_, BuilderOf(options_.trust.folder, options_.trust.node), in_use);
  if (!builds.ok()) {
    LogLimited(LogLevel::kWarning, "images of earlier builds cannot be removed; trying again", "",
               {{"error", builds}});
  }
  const auto left = SweepContainers(docker_, options_.trust.folder, options_.trust.node, in_use);
  if (!left.ok()) return;
  for (const std::string& id : ended) {
    if (left->contains(id)) continue;
    if (!DeploymentState(absl::StrCat(folder_, "/", id)).Remove().ok()) continue;
    MutexLock lock(mutex_);
    ended_deployments_.erase(id);
  }
}

void JobRunner::SweepSecrets() {
  secret_folders_.RemoveOthers([this](const std::string& id) { return MayRun(id); });
}

bool JobRunner::MayRun(const std::string& id) const {
  MutexLock lock(mutex_);
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return unrecovered_.contains(id);
  // One without an outcome is followed by the next process of the agent.
  return job->second->state == State::kRunning || !job->second->folder->log()->has_final();
}

}  // namespace muster
