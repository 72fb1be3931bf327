// The execution of a job, from its start to its final record.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_PROCESS_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/docker/docker_engine.h"
#include "services/agent/jobs/command_container.h"
#include "services/agent/jobs/content_fetcher.h"
#include "services/agent/jobs/job_folder.h"
#include "services/agent/jobs/job_log.h"
#include "services/agent/jobs/job_plan.h"
#include "services/agent/jobs/job_provisions.h"
#include "services/agent/jobs/job_secrets.h"
#include "services/agent/jobs/output_recorder.h"
#include "services/agent/jobs/running_command.h"
#include "services/agent/jobs/spool_quota.h"
#include "services/agent/jobs/workspace_outbox.h"
#include "services/common/base/unique_fd.h"

namespace muster {

// The objects that the jobs of a node share, and that outlive them.
struct JobHost {
  std::string folder;  // of the agent
  std::string node;
  SpoolQuota& quota;
  DockerEngine& docker;
  ContentSource& contents;
  SecretHost secrets = {};
  WorkspaceOutbox* workspaces = nullptr;  // null: the node has none
  // A workspace that cannot be saved for so long, such as on a full disk, is given up: the job has
  // a place among those that run, and its secrets stay in memory.
  absl::Duration save_within = absl::Minutes(10);
};

// Runs one command, on the node or in a container, or builds an image. Its output is always read,
// so it never waits for the network; the stored output is bounded (output_recorder.h). At its time
// limit or on Stop it gets SIGTERM, and SIGKILL 5 s later. The container of a deployment has a
// state (deployment_state.h): if that becomes too large, the container gets SIGKILL. If it exits
// with 0, its outputs are recorded. Its secrets (job_secrets.h) are fetched before it starts, and
// masked in its output. Its workspace (job_workspace.h) is fetched before it starts, and saved
// after its end, whatever the outcome is.
class JobProcess {
 public:
  // The folder has a log and outlives this. Run calls `on_records` when the log has new records.
  JobProcess(const JobHost& host, NodeJobFolder& folder, std::string job, JobPlan plan,
             std::function<void()> on_records);

  // Blocks until the final record is durable in the log, which must not have one. Retries on a full
  // disk until the agent stops. If the folder names a container, follows that one to its end
  // instead of starting the command.
  void Run();

  // Ends the process, from any thread. The first reason is the outcome.
  void Stop(JobStop why);

  // Returns the quota that its output uses, after Run.
  int64_t spooled() const { return spooled_; }

 private:
  absl::StatusOr<std::unique_ptr<RunningCommand>> Start(JobOutputSink sink);
  absl::StatusOr<std::unique_ptr<RunningCommand>> StartBuild(JobOutputSink sink);
  void Resume();
  JobOutputSink SinkOf(OutputRecorder& recorder);
  void RunToEnd(RunningCommand& command, OutputRecorder& recorder, absl::Duration began);
  CommandContainer::Options ContainerOptions(JobOutputSink sink);
  bool MustNotStart() const;
  ContentFetcher::Options ReadsOf(const std::string& deployment);
  v1::JobRecord FinalOfStart(const absl::Status& failure) const;
  // Stops the container of a deployment if its state is too large. Returns the time of the next
  // call.
  absl::Duration StopIfTooLarge(absl::Duration now);
  // Ends the group if it is due. Returns the time of the next call.
  absl::Duration EndIfDue(RunningCommand& command, absl::Duration now);
  // Stores why a container is ended, before it gets the signal.
  void NoteStop();
  bool IsAbandoned() const;
  v1::JobRecord FinalOfEnd(const CommandEnd& end, bool output_missing) const;
  v1::JobRecord MakeFinal(const absl::StatusOr<CommandEnd>& end, absl::Duration took,
                          const OutputRecorder& recorder) const;
  // Stores the outputs of a deployment that exited with 0. Changes the final record if they are
  // invalid or the state is too large. Returns false if they cannot be stored: then the next
  // process of the agent reads them again.
  bool HandleState(v1::JobRecord::Final* final);
  // Saves the workspace of a deployment, whatever its outcome is, in the same way.
  bool SaveWorkspace(v1::JobRecord::Final* final);
  // Waits for the next attempt to write to the disk, or a stop.
  void AwaitDisk(absl::Duration time);

  const JobHost host_;
  NodeJobFolder& folder_;
  SpoolQuota& quota_;
  const std::string job_;
  const JobPlan plan_;
  const std::function<void()> on_records_;
  JobLog log_;
  JobProvisions provisions_;
  UniqueFd wake_;
  std::atomic<JobStop> stop_ = JobStop::kNone;
  std::atomic<bool> agent_stops_ = false;
  absl::Duration check_state_at_;  // monotonic
  std::string too_large_;          // the limit that the state exceeded while the container ran
  absl::Duration limit_at_ = absl::InfiniteDuration();
  absl::Duration kill_at_ = absl::InfiniteDuration();
  JobStop ended_by_ = JobStop::kNone;                // why the group was ended
  absl::Time signal_time_ = absl::InfiniteFuture();  // the first signal, by the wall clock
  absl::Duration signal_at_;
  bool news_ = false;  // the log has records that were not reported
  int64_t spooled_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_PROCESS_H_
