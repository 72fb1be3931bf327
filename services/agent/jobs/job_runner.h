// The jobs of a node: judges and runs commands, and stores their records until they are acked.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_RUNNER_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/docker/docker_engine.h"
#include "services/agent/jobs/cancelled_jobs.h"
#include "services/agent/jobs/command_judge.h"
#include "services/agent/jobs/content_fetcher.h"
#include "services/agent/jobs/finished_jobs.h"
#include "services/agent/jobs/job_folder.h"
#include "services/agent/jobs/job_process.h"
#include "services/agent/jobs/record_sender.h"
#include "services/agent/jobs/secret_folders.h"
#include "services/agent/jobs/spool_quota.h"
#include "services/agent/jobs/waiting_jobs.h"
#include "services/agent/jobs/workspace_outbox.h"
#include "services/common/base/backoff.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/jobs/records_signature.h"

namespace muster {

struct JobRunnerOptions {
  CommandTrust trust;
  TimerService* timers;  // outlives the runner, as the next
  Executor* executor;    // starts commands and removes finished jobs; a task waits for the disk,
                         // another one for Docker
  size_t max_parallel = 16;
  size_t max_waiting = 1'000;            // commands that wait for their turn
  size_t max_remembered = 10'000;        // jobs in the folder, finished ones included
  size_t max_cancelled = 5'000;          // jobs without a folder whose command must not run
  int64_t max_spool = int64_t{1} << 30;  // bytes of output on the disk, of all jobs
  FinalSigner sign;                      // of final records; null: they are not signed
  std::string docker_socket = "/var/run/docker.sock";  // the daemon that runs containers
  ContentSource* contents = nullptr;                   // outlives the runner; required
  SecretSource* secrets = nullptr;  // outlives the runner; null: deployments with secrets fail
  WorkspaceOutbox* workspaces = nullptr;  // likewise for deployments with workspaces
  std::vector<std::string> memory_folders = DefaultMemoryFolders();  // for secrets
  std::string registry_credentials;  // a file (registry_credentials.h); empty: none
  // When containers without a job are removed, for the first time, and the period after that.
  absl::Duration first_sweep = absl::Minutes(1);
  absl::Duration sweep_every = absl::Minutes(10);
};

// Receives commands and cancels, and starts each admitted command when it is its turn. A command
// blocks its own thread; the other work is a task on the executor. Thread-safe; calls may block on
// the disk, never on a command.
//
// A job in NODE_FOLDER/jobs/ never runs again. It stays there for a day (finished_jobs.h), unless
// `max_remembered` is reached. A job that an earlier process started and did not end is ended and
// reported as LOST, unless it runs in a container, which is followed to its end. One that did not
// start is removed, and the parent sends it again. If the disk fails meanwhile, this is tried
// again.
//
// A reported outcome is final, whatever the parent sends, because the node signs it: a job that was
// refused or cancelled never runs here, also if what was refused was not its genuine command.
class JobRunner {
 public:
  // Calls `on_records` from any thread, also under locks, when NextRecords may return records. It
  // must neither wait nor call this object.
  static absl::StatusOr<std::unique_ptr<JobRunner>> Open(JobRunnerOptions options,
                                                         std::function<void()> on_records);
  // Ends the running commands.
  ~JobRunner();

  // Judges a command, and runs it when it is its turn. The outcome is a record, unless the command
  // does not run and `max_cancelled` is reached: no outcome would be final.
  void Receive(const v1::JobCommand& command);
  // Ends a job, or prevents its start, also if its command arrives later.
  void Cancel(const v1::JobCancel& cancel);
  absl::Status ReceiveRevocations(const v1::CommandRevocations& list) {
    return judge_->ReceiveRevocations(list);
  }
  int64_t revocations_version() const { return judge_->revocations_version(); }

  // As in record_sender.h.
  bool NextRecords(v1::JobRecords* records) { return records_.NextRecords(records); }
  void HandleAcks(const v1::RecordsAck& acks) ABSL_LOCKS_EXCLUDED(mutex_);
  void Rewind();
  bool AwaitAcked(absl::Duration limit) { return records_.AwaitAcked(limit); }

  // Starts no further command, and ends the running ones after `grace`. Blocks until their records
  // are stored.
  void Stop(absl::Duration grace);

 private:
  enum class State { kWaiting, kRunning, kEnded };

  struct Job {
    std::string id;
    std::unique_ptr<NodeJobFolder> folder;
    State state = State::kEnded;
    JobPlan plan;
    std::unique_ptr<JobProcess> process;
    std::thread thread;
    int64_t spooled = 0;  // bytes of the quota
  };

  JobRunner(JobRunnerOptions options, std::unique_ptr<CommandJudge> judge,
            std::unique_ptr<CancelledJobs> cancelled, std::function<void()> on_records);
  absl::Status Recover() ABSL_LOCKS_EXCLUDED(mutex_);
  void RecoverAll(const std::vector<FolderEntry>& entries) ABSL_LOCKS_EXCLUDED(mutex_);
  // Recovers a job, or notes that its files are damaged. Another failure may be temporary.
  absl::Status RecoverOne(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetryRecovery() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remember(const std::string& id, std::unique_ptr<NodeJobFolder> folder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Job& AddJob(const std::string& id, std::unique_ptr<NodeJobFolder> folder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool IsKnown(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::JobRecord FinalOfReplay(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Admit(const v1::JobCommand& command, const Verdict& verdict)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Queue(Job& job, const v1::JobCommand& command, const Verdict& verdict)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelJob(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWithoutRecords(const std::string& job, v1::JobRecord final)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportStored(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the secrets of jobs that do not run.
  void SweepSecrets() ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayRun(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The task.
  void Tend() ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveReported() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StoreCancels() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Begin(Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(Job& job, v1::JobRecord final) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration NextTend() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const JobRunnerOptions options_;
  const std::unique_ptr<CommandJudge> judge_;
  const std::function<void()> on_records_;
  const std::string folder_;
  SpoolQuota quota_;
  DockerEngine docker_;
  const SecretFolders secret_folders_;
  mutable Mutex mutex_;
  CondVar idle_;  // no command runs
  std::map<std::string, std::unique_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  FinishedJobs finished_ ABSL_GUARDED_BY(mutex_);
  // Jobs that could not be recovered for now, such as on a full disk, and whether each was
  // cancelled since. Nothing is reported of them.
  std::map<std::string, bool> unrecovered_ ABSL_GUARDED_BY(mutex_);
  Backoff recover_backoff_ ABSL_GUARDED_BY(mutex_);
  absl::Duration recover_at_ ABSL_GUARDED_BY(mutex_);  // monotonic
  // Deployments that had ended when they were recovered: they may have left a state.
  std::set<std::string> ended_deployments_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<CancelledJobs> cancelled_ ABSL_PT_GUARDED_BY(mutex_);
  // After jobs_, whose outboxes its task uses. Its lock may be taken under mutex_.
  RecordSender records_;
  WaitingJobs waiting_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Last: it uses the members above. RunAfter is called under the lock, after the change.
  ScheduledTask tend_;
  ScheduledTask sweep_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_RUNNER_H_
