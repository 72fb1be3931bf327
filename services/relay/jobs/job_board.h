// The jobs of the fleet, at the root relay.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_BOARD_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_BOARD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/audit.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/job_folder.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/job_table.h"
#include "services/relay/jobs/job_watchers.h"
#include "services/relay/jobs/job_writer.h"
#include "services/relay/jobs/late_jobs.h"
#include "services/relay/jobs/record_inbox.h"
#include "services/relay/jobs/record_sink.h"
#include "services/relay/jobs/running_job.h"
#include "services/relay/topology/topology.h"

namespace muster {

// A job as a watcher sees it.
struct JobView {
  v1::Job job;
  std::string records_path;
  int64_t end = 0;  // of the durable records
};

// The answer to a request that may repeat an earlier one.
struct JobChange {
  v1::Job job;
  bool changed = false;  // by this request
};

// Each job has a folder (job_folder.h). A record of a node is acked when it is durable.
// Thread-safe: the parts hold the locks. Calls of JobService may block on the disk, and Submit on
// the register of nodes.
class JobBoard : public RecordSink {
 public:
  struct Options {
    std::string folder;
    int64_t max_running = 1'000;
    int64_t max_output = int64_t{256} << 20;         // stored bytes of each job
    absl::Duration retention = absl::Hours(24 * 7);  // of finished jobs
    int64_t max_kept = 10'000;                       // finished jobs
    // With those of which only the records are kept that the audit log lacks.
    int64_t max_unaudited = 20'000;
    // Returns why targets are unknown, from the register of nodes; empty for those that may attach.
    // Omits those for which the register did not answer in time. Blocks; null: not asked.
    std::function<RunningJob::Explanations(const std::vector<std::string>& nodes)> explain;
    // Verifies the signature of a final record (VerifyFinal); null: not verified.
    std::function<absl::Status(const v1::JobRecord& final)> verify;
    // Called when Unaudited returns more. Must not block. Null: not called.
    std::function<void()> on_unaudited;
  };

  // The objects that jobs use; they outlive the board. `executor` runs the writer of the records
  // alone, which waits for the disk, and `late_executor` what reads jobs again (late_jobs.h).
  struct Parts {
    FileOps& files;
    Topology& topology;
    CommandDispatcher& dispatcher;
    const Clock& clock;
    TimerService& timers;
    Executor& executor;
    Executor& late_executor;
  };

  // Loads the jobs of the folder and continues them.
  static absl::StatusOr<std::unique_ptr<JobBoard>> Open(Options options, const Parts& parts);

  // `submitter`: the URI of the signer. Returns the existing job for a repeated call.
  // ALREADY_EXISTS (JOB_EXISTS), NOT_FOUND (NODE_NOT_FOUND: it is for all nodes, and there is
  // none), RESOURCE_EXHAUSTED (TOO_MANY_JOBS, DISK_FULL), UNAVAILABLE
  // (JOB_IN_CREATION: repeat the call).
  absl::StatusOr<JobChange> Submit(JobRequest request, const std::string& submitter);
  // NOT_FOUND (JOB_NOT_FOUND), like the next two.
  absl::StatusOr<JobView> Get(const std::string& job) const;
  // `by`: the URI of the operator or the gateway.
  absl::StatusOr<JobChange> Cancel(const std::string& job, const std::string& by);
  // Cancels the job of this request. A job that does not exist is created as a cancelled one: no
  // node gets its command, and a later Submit returns it. Errors: as Submit without NODE_NOT_FOUND.
  absl::StatusOr<JobChange> CancelOrCreate(JobRequest request, const std::string& submitter,
                                           const std::string& by);
  // Calls `wake` after every change of the job, and maybe once after StopWatch.
  absl::StatusOr<uint64_t> Watch(const std::string& job, std::function<void()> wake);
  void StopWatch(const std::string& job, uint64_t watch) { watchers_.Remove(job, watch); }

  // Returns jobs, the newest first, that are older than the job `before` (empty: all).
  std::vector<v1::Job> List(const std::string& before, size_t limit) const;

  // Returns the records of at most `limit` jobs that the audit log lacks, those of the oldest jobs
  // first. They survive a restart until MarkAudited.
  std::vector<v1::RecordJobRequest> Unaudited(size_t limit) const;
  // The audit log has the record: Unaudited does not return it again, even if the disk cannot note
  // that; then the next start does. Blocks on the disk; not to be called while the writer runs.
  absl::Status MarkAudited(const v1::RecordJobRequest& record);

  // RecordSink. Drops records that ValidateJobRecord refuses: they are neither stored nor acked.
  void Receive(v1::JobRecords records, Done done) override;
  void NoteRefused(const v1::JobRecord& record, const absl::Status& why) override;

  // Called on changes of the topology.
  void OnReachable() { inbox_.SetReachable(); }
  void OnRelayChanged(const std::string& relay, bool attached) { inbox_.AddRelay(relay, attached); }

  int64_t running() const { return table_.running(); }

 private:
  JobBoard(Options options, const Parts& parts);
  absl::StatusOr<v1::Job> FindSame(const std::string& id, const JobRequest& request) const;
  absl::StatusOr<v1::Job> Create(const std::string& id, JobRequest request,
                                 const std::string& submitter,
                                 const RunningJob::Explanations& explanations,
                                 const std::optional<Cancellation>& cancellation);
  absl::Status Reopen(const std::string& id, const std::string& folder)
      ABSL_LOCKS_EXCLUDED(folders_);
  Cancellation CancellationBy(const std::string& by) const;
  RunningJob::Explanations Explain(const JobRequest& request) const;

  const Options options_;
  FileOps& files_;
  const TopologyView& topology_;
  const RunningJob::Fleet fleet_;
  // Held while the folder of a finished job is opened: it has one writer at a time.
  Mutex folders_;
  JobTable table_;
  JobWatchers watchers_;
  RecordInbox inbox_;
  std::unique_ptr<LateJobs> late_;
  std::unique_ptr<JobWriter> writer_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_BOARD_H_
