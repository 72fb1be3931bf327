// A running job at the root relay.
#ifndef MUSTER_SERVICES_RELAY_JOBS_RUNNING_JOB_H_
#define MUSTER_SERVICES_RELAY_JOBS_RUNNING_JOB_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/journal/journal.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/job_folder.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/job_state.h"
#include "services/relay/jobs/target_routes.h"
#include "services/relay/topology/topology_view.h"

namespace muster {

// The state of the job, and its records that are not stored yet, always belong together: every
// method that changes the state appends its records to `pending_` under the same lock. Store writes
// them in that order.
//
// Thread-safe. The locks of the dispatcher and of the topology may be taken under the locks of this
// object.
class RunningJob {
 public:
  // All outlive the job.
  struct Fleet {
    const TopologyView& topology;
    CommandDispatcher& dispatcher;
    const Clock& clock;
  };

  // Why the fleet has no node of a name; empty for a node that has joined, and may attach.
  using Explanations = std::map<std::string, std::string, std::less<>>;

  // `has_late_records`: an earlier process stored records of this late job, and did not end it.
  RunningJob(Fleet fleet, JobRequest request, JobState state, std::unique_ptr<JobFolder> folder,
             std::unique_ptr<Journal> log, bool is_late = false, bool has_late_records = false);

  // Returns whether it had ended, and was opened again for records of nodes that it had given up.
  // Nothing is dispatched for it.
  bool is_late() const { return is_late_; }

  // Dispatches a new job, and ends its unknown targets.
  void Start(const Explanations& explanations = {});
  // Dispatches a job of an earlier process: every target without a final record of the node is
  // known to the dispatcher afterwards.
  void Continue();

  // Stores the cancellation, then cancels the job on all targets. Returns what is stored: that of
  // an earlier call if it failed after it had written. Returns none if the job was cancelled
  // already, or all targets have ended.
  absl::StatusOr<std::optional<Cancellation>> Cancel(Cancellation cancellation);
  // As JobFolder::MarkAudited.
  absl::Status MarkAudited(bool cancellation) { return folder_->MarkAudited(cancellation); }
  // Handles a record of a node. Returns whether it is a new one.
  bool Receive(v1::JobRecord record);
  // Remembers why a record of a node was refused: the final record that this relay makes in the
  // place of the node's states it (RECORD_REFUSED).
  void NoteDropped(const std::string& node, const absl::Status& why);
  void OnReachable();
  // Each of these relays was attached (true) or lost.
  void OnRelaysChanged(const std::map<std::string, bool>& relays);
  void Tick();

  // Returns the job with its current counts. It is running until its end is stored, unless it is
  // late.
  v1::Job Describe() const;
  // Returns the sequence up to which the records of the node are stored, after a Store.
  int64_t Reached(std::string_view node) const;
  // The end of the stored records in the log.
  int64_t end() const;
  // Every target has a final record.
  bool ended() const;

  // Appends the pending records to the log and syncs it. Returns true if there were any. After a
  // failure the next call continues with the same records.
  absl::StatusOr<bool> Store();
  // Stores the end of the job, and returns it; that of a late job only if it got records.
  absl::StatusOr<v1::Job> Finish();
  // Returns the nodes whose own outcome may arrive later.
  std::vector<std::string> Abandoned() const;
  bool has_abandoned() const;

 private:
  JobRoutes Routes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddPending(std::vector<v1::JobRecord> records) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Fleet fleet_;
  const std::string id_;
  const JobRequest request_;
  const std::unique_ptr<JobFolder> folder_;
  const bool is_late_;
  Mutex log_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // held while the disk is written
  const std::unique_ptr<Journal> log_ ABSL_GUARDED_BY(log_mutex_);
  std::vector<v1::JobRecord> storing_ ABSL_GUARDED_BY(log_mutex_);
  size_t appended_ ABSL_GUARDED_BY(log_mutex_) = 0;  // of storing_
  bool reopened_ ABSL_GUARDED_BY(log_mutex_);        // a late job has got records
  mutable Mutex mutex_;
  JobState state_ ABSL_GUARDED_BY(mutex_);
  // Nothing is dispatched before: Start first ends the targets that are unknown.
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<v1::JobRecord> pending_ ABSL_GUARDED_BY(mutex_);
  // Targets of which a record was refused, and why; not stored.
  std::map<std::string, std::string> dropped_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Time> finished_at_ ABSL_GUARDED_BY(mutex_);  // by the first Finish
  int64_t end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_RUNNING_JOB_H_
