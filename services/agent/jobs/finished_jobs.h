// Jobs that must not run again.
#ifndef MUSTER_SERVICES_AGENT_JOBS_FINISHED_JOBS_H_
#define MUSTER_SERVICES_AGENT_JOBS_FINISHED_JOBS_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "services/common/base/file_ops.h"

namespace muster {

// Jobs whose records the root relay has. The folder of each stays for an hour longer than its
// command is valid, so that a repeated command does not run. Not thread-safe; Forget blocks on the
// disk.
class FinishedJobs {
 public:
  // `folder` contains the folders of jobs. `ops` outlives this object.
  FinishedJobs(FileOps& ops, std::string folder) : ops_(ops), folder_(std::move(folder)) {}

  // Adds a job whose command may start until `not_after`. InfiniteFuture: it is never forgotten.
  void Add(const std::string& job, absl::Time not_after) { jobs_[job] = not_after; }
  bool Contains(const std::string& job) const { return jobs_.contains(job); }
  size_t size() const { return jobs_.size(); }

  // Removes the expired jobs and their folders. Logs a folder that cannot be removed; the next call
  // tries again.
  void Forget(absl::Time now);

 private:
  FileOps& ops_;
  const std::string folder_;
  std::map<std::string, absl::Time> jobs_;  // the latest start
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_FINISHED_JOBS_H_
