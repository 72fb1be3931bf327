// Jobs that must not run again.
#ifndef MUSTER_SERVICES_AGENT_JOBS_FINISHED_JOBS_H_
#define MUSTER_SERVICES_AGENT_JOBS_FINISHED_JOBS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "services/agent/jobs/keep_until.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"

namespace muster {

// Jobs whose records were acked. The folder of each stays for 25 hours, and for an hour longer than
// the root relay may wait for its outcome: a repeated command does not run, and no peer makes this
// node report that a job which has run did not. Not thread-safe; Forget and ForgetBefore block on
// the disk.
class FinishedJobs {
 public:
  // `folder` contains the folders of jobs. `ops` and `clock` outlive this object.
  // Calls `prepare` with the folder of a job before it removes the folder.
  FinishedJobs(FileOps& ops, std::string folder, const Clock& clock,
               std::function<void(const std::string& job_folder)> prepare = {})
      : ops_(ops), folder_(std::move(folder)), clock_(clock), prepare_(std::move(prepare)) {}

  // Adds a job that could run until `latest_end`, the last start and the time limit of its command,
  // and whether it started.
  void Add(const std::string& job, absl::Time latest_end, bool started);
  // Adds a job whose files cannot be read, so that its outcome is not known. It is never forgotten.
  void AddUnreadable(const std::string& job) { jobs_[job] = std::nullopt; }

  bool Contains(const std::string& job) const { return jobs_.contains(job); }
  bool IsUnreadable(const std::string& job) const;
  // Returns whether a job that is contained and readable has started.
  bool HasStarted(const std::string& job) const { return jobs_.at(job)->started; }
  size_t size() const { return jobs_.size(); }

  // Removes the expired jobs and their folders. Logs a folder that cannot be removed; the next call
  // tries again.
  void Forget();
  // Removes the jobs that expired before `time`, at which a verified command was signed. Does not
  // depend on the clock.
  void ForgetBefore(absl::Time time);

 private:
  struct Job {
    KeepUntil keep;
    bool started;
  };

  void ForgetIf(absl::FunctionRef<bool(const KeepUntil&)> is_over);

  FileOps& ops_;
  const std::string folder_;
  const Clock& clock_;
  const std::function<void(const std::string& job_folder)> prepare_;
  std::map<std::string, std::optional<Job>> jobs_;  // nothing: it cannot be read
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_FINISHED_JOBS_H_
