// The process of a job, from its start to its final record.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_PROCESS_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
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
  std::vector<std::string> environment;  // NAME=value, in addition to those of all jobs
  absl::Duration time_limit;
  int64_t max_output = 0;
  bool keep_output = true;
};

// The reason to end a process early.
enum class JobStop { kNone, kCancelled, kTimedOut, kAgentStops };

// Runs one command: in its own session, stdin from /dev/null, an environment from an
// allow-list. Its pipes are always read, so it never waits for the network; the stored output
// is bounded (output_recorder.h). At its time limit or on Stop its process group gets SIGTERM, and
// SIGKILL 5 s later. Other processes of the group are killed when it exits.
class JobProcess {
 public:
  // The folder has a log; it and the quota outlive this. Run calls `on_records` when the log has
  // new records.
  JobProcess(NodeJobFolder& folder, SpoolQuota& quota, std::string job, JobPlan plan,
             std::function<void()> on_records);

  // Blocks until the final record is in the log. Retries on a full disk until the agent stops.
  void Run();

  // Ends the process, from any thread. The first reason is the outcome.
  void Stop(JobStop why);

  // Returns the quota that its output uses, after Run.
  int64_t spooled() const { return spooled_; }

 private:
  absl::StatusOr<SubprocessOptions> Options();
  void ReadUntilExit(Subprocess& child, OutputRecorder& recorder);
  bool Read(UniqueFd& pipe, v1::JobStream stream, OutputRecorder& recorder, size_t limit);
  // Stores the record of the start, and does not wait for a full disk: output may be stored before
  // it. Returns the time of the next call.
  absl::Duration StoreStart(absl::Duration now);
  // Ends the group if it is due. Returns the time of the next call.
  absl::Duration EndIfDue(Subprocess& child, absl::Duration now);
  v1::JobRecord MakeFinal(const ExitStatus& exit, absl::Duration took,
                          const OutputRecorder& recorder) const;
  void AppendWithRetry(v1::JobRecord record);

  NodeJobFolder& folder_;
  SpoolQuota& quota_;
  const std::string job_;
  const JobPlan plan_;
  const std::function<void()> on_records_;
  UniqueFd wake_;
  std::atomic<JobStop> stop_ = JobStop::kNone;
  std::atomic<bool> agent_stops_ = false;
  std::optional<v1::JobRecord> start_;  // if it is not stored yet
  absl::Duration store_start_at_;       // monotonic, as the next
  absl::Duration limit_at_;
  absl::Duration kill_at_ = absl::InfiniteDuration();
  JobStop ended_by_ = JobStop::kNone;  // why the group was ended
  bool killed_ = false;
  int64_t spooled_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_PROCESS_H_
