// The jobs of a node: judges and runs commands, and stores their records until they are acked.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_RUNNER_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/cancelled_jobs.h"
#include "services/agent/jobs/command_judge.h"
#include "services/agent/jobs/job_folder.h"
#include "services/agent/jobs/job_process.h"
#include "services/agent/jobs/refusals.h"
#include "services/agent/jobs/spool_quota.h"
#include "services/common/base/mutex.h"
#include "services/common/jobs/records_signature.h"

namespace muster {

struct JobRunnerOptions {
  CommandTrust trust;
  size_t max_parallel = 16;
  size_t max_waiting = 1'000;            // commands that wait for their turn
  size_t max_remembered = 10'000;        // jobs in the folder, finished ones included
  int64_t max_spool = int64_t{1} << 30;  // bytes of output on the disk, of all jobs
  FinalSigner sign;                      // of final records; null: they are not signed
};

// Thread-safe; calls may block on the disk, never on a command.
//
// A job in NODE_FOLDER/jobs/ never runs again. It stays there for an hour longer than its command
// is valid. A job that an earlier process started and did not end is ended and reported as LOST.
// One that did not start is removed, and the parent sends it again.
class JobRunner {
 public:
  // Calls `on_records` from any thread, also under locks, when NextRecords may return records. It
  // must neither wait nor call this object.
  static absl::StatusOr<std::unique_ptr<JobRunner>> Open(JobRunnerOptions options,
                                                         std::function<void()> on_records);
  // Ends the running commands.
  ~JobRunner();

  // Judges a command, and runs it when it is its turn. The outcome is always a record.
  void Receive(const v1::JobCommand& command);
  // Ends a job, or prevents its start, also if its command arrives later.
  void Cancel(const v1::JobCancel& cancel);
  absl::Status ReceiveRevocations(const v1::CommandRevocations& list) {
    return judge_->ReceiveRevocations(list);
  }
  int64_t revocations_version() const { return judge_->revocations_version(); }

  // Adds at most 256 KiB of records that are to be sent now. Returns false if there are none.
  bool NextRecords(v1::JobRecords* records);
  void HandleAcks(const v1::RecordsAck& acks);
  // Sends all unacked records again, after a new welcome.
  void Rewind();
  // Waits until all final records are acked. Returns false after `limit`.
  bool AwaitAcked(absl::Duration limit);

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
    absl::Duration begin_by;  // monotonic
    std::unique_ptr<JobProcess> process;
    std::thread thread;
    bool thread_done = false;
    bool unreadable = false;  // its log
    int64_t spooled = 0;      // bytes of the quota
  };

  // A job without unacked records.
  struct Finished {
    std::string command_sha256;
    absl::Time not_after;
  };

  JobRunner(JobRunnerOptions options, std::unique_ptr<CommandJudge> judge,
            std::function<void()> on_records);
  absl::Status Recover();
  void Remember(const std::string& id, std::unique_ptr<NodeJobFolder> folder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Manage() ABSL_LOCKS_EXCLUDED(mutex_);

  bool IsKnown(const v1::JobCommand& command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddCancelled(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Admit(const v1::JobCommand& command, const Verdict& verdict)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Queue(const std::shared_ptr<Job>& job, const v1::JobCommand& command, const Verdict& verdict)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Begin(const std::shared_ptr<Job>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(Job& job, v1::JobRecord final) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveAcked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration NextWake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool all_acked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const JobRunnerOptions options_;
  const std::unique_ptr<CommandJudge> judge_;
  const std::function<void()> on_records_;
  const std::string folder_;
  SpoolQuota quota_;
  mutable Mutex mutex_;
  CondVar wake_;  // of the manager
  CondVar idle_;  // of Stop
  CondVar acked_;
  std::map<std::string, std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Finished> finished_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  Refusals refusals_ ABSL_GUARDED_BY(mutex_);
  CancelledJobs cancelled_ ABSL_GUARDED_BY(mutex_);
  std::string last_served_ ABSL_GUARDED_BY(mutex_);  // by NextRecords
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread manager_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_RUNNER_H_
