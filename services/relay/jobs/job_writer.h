// Stores job records at the root relay.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_WRITER_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_WRITER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/job_table.h"
#include "services/relay/jobs/job_watchers.h"
#include "services/relay/jobs/pending_acks.h"
#include "services/relay/jobs/record_inbox.h"

namespace muster {

// Handles the work of the inbox in rounds: gives records to their jobs, stores what the jobs have
// to store with one sync each, acks, and ends jobs. Also ends what time decides, every half second.
// A full disk is retried after a second: no records are read meanwhile.
//
// The outcome of a node that a job gave up may arrive after the end of the job. The job is then
// opened again, until it has got no record for 10 s.
//
// One task on the executor runs the rounds, and waits for the disk: the executor has a thread for
// it. The other methods are called by its owner, and no state is shared with another thread.
class JobWriter {
 public:
  // All outlive it.
  struct Parts {
    FileOps& files;
    const Clock& clock;
    CommandDispatcher& dispatcher;
    JobTable& table;
    JobWatchers& watchers;
    RecordInbox& inbox;
    TimerService& timers;
    Executor& executor;
    // Verifies the signature of a final record (VerifyFinal); null: not verified.
    std::function<absl::Status(const v1::JobRecord& final)> verify;
    // Opens a finished job again (ReopenJob), also in the table; null: late records are dropped.
    std::function<absl::StatusOr<std::shared_ptr<RunningJob>>(const std::string& id,
                                                              const std::string& folder)>
        reopen;
  };

  explicit JobWriter(Parts parts);
  // Waits for the current round.
  ~JobWriter();

 private:
  struct Round {
    RecordInbox::Work work;
    bool tick = false;
  };

  void Run();
  void Begin(Round& round);
  void End(Round round);
  void DropUnsigned(v1::JobRecords* records);
  void Receive(const v1::JobRecord& record);
  // Returns the finished job that gave up the node of the record, opened again; null: none did.
  std::shared_ptr<RunningJob> FindLate(const v1::JobRecord& record);
  bool StoreAll();
  void Ack(const std::deque<RecordInbox::Batch>& batches);
  void Finish(const std::string& id, RunningJob& job);
  void RemoveOld();

  const Parts parts_;
  PendingAcks acks_;
  std::optional<Round> round_;  // whose records are not stored yet
  // The late jobs that are open, and when each got its last new record (monotonic).
  std::map<std::string, absl::Duration> late_;
  // The jobs of the current round that could not be opened again: their records must not be acked.
  std::set<std::string> unopened_;
  absl::Duration tick_at_;  // monotonic, as the next
  absl::Duration retry_at_ = -absl::InfiniteDuration();
  ScheduledTask task_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_WRITER_H_
