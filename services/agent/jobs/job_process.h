// The process of a job, from its start to its final record.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_PROCESS_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/jobs/job_folder.h"
#include "services/agent/jobs/output_recorder.h"
#include "services/agent/jobs/spool_quota.h"
#include "services/common/base/subprocess.h"

namespace muster {

struct JobPlan {
  std::vector<std::string> argv;  // an absolute path first
  std::string user;               // empty: as this process
  std::string directory;
  std::vector<std::string> environment;  // NAME=value, beside what every job gets
  absl::Duration time_limit;
  int64_t max_output = 0;
  bool keep_output = true;
};

// Why a process is ended before its own end.
enum class JobStop { kNone, kCancelled, kTimedOut, kAgentStops };

// Runs one command: in a session of its own, stdin from /dev/null, an environment from an
// allow-list. Its pipes are always read, so that it never waits for the network; what is kept of
// its output is bounded (output_recorder.h). At its time limit or on Stop its process group gets
// SIGTERM, and 5 s later SIGKILL; what it leaves in the group is killed at its end.
class JobProcess {
 public:
  // The folder has a log; it and the quota outlive this. `on_records`, called from the thread of
  // Run: the log has more.
  JobProcess(NodeJobFolder& folder, SpoolQuota& quota, std::string job, JobPlan plan,
             std::function<void()> on_records);

  // Blocks until the final record is in the log. A full disk is waited for, until the agent stops.
  void Run();

  // From any thread; the first counts.
  void Stop(JobStop why);

  // What its output took of the quota; after Run.
  int64_t spooled() const { return spooled_; }

 private:
  absl::StatusOr<SubprocessOptions> Options();
  void Attend(Subprocess& child, OutputRecorder& recorder);
  bool Read(UniqueFd& pipe, v1::JobStream stream, OutputRecorder& recorder, size_t limit);
  // Ends the group if it is time for that; returns when to look again.
  absl::Duration Press(Subprocess& child, absl::Duration now);
  v1::JobRecord Judge(const ExitStatus& exit, absl::Duration took,
                      const OutputRecorder& recorder) const;
  void AppendPatiently(v1::JobRecord record);

  NodeJobFolder& folder_;
  SpoolQuota& quota_;
  const std::string job_;
  const JobPlan plan_;
  const std::function<void()> on_records_;
  UniqueFd wake_;
  std::atomic<JobStop> stop_ = JobStop::kNone;
  absl::Duration limit_at_;  // monotonic
  absl::Duration kill_at_ = absl::InfiniteDuration();
  JobStop pressed_ = JobStop::kNone;  // why the group was told to end
  bool killed_ = false;
  int64_t spooled_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_PROCESS_H_
