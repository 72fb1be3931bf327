// Stores job records at the root relay.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_WRITER_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_WRITER_H_

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
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
#include "services/relay/jobs/late_jobs.h"
#include "services/relay/jobs/pending_acks.h"
#include "services/relay/jobs/record_inbox.h"

namespace muster {

// Handles the work of the inbox in rounds: gives records to their jobs, stores what the jobs have
// to store with one sync each, acks, and ends jobs. Also ends what time decides, every half second.
// A full disk is retried after a second: no records are read meanwhile.
//
// The outcome of a node that a job gave up may arrive after the end of the job. The job is then
// opened again (late_jobs.h), until no such node is left, or it has got no record for 10 s.
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
    LateJobs* late = nullptr;  // null: late records are dropped
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
  bool StoreAll();
  void Ack(const std::deque<RecordInbox::Batch>& batches);
  void Finish(const std::string& id, RunningJob& job);
  void RemoveOld();

  const Parts parts_;
  PendingAcks acks_;
  std::optional<Round> round_;  // whose records are not stored yet
  // The jobs of the current round with late records that must not be acked.
  std::set<std::string> held_;
  absl::Duration tick_at_;  // monotonic, as the next
  absl::Duration retry_at_ = -absl::InfiniteDuration();
  ScheduledTask task_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_WRITER_H_
