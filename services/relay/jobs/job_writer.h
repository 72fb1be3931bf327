// The thread that stores job records at the root relay.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_WRITER_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_WRITER_H_

#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log_limiter.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/job_table.h"
#include "services/relay/jobs/job_watchers.h"
#include "services/relay/jobs/pending_acks.h"
#include "services/relay/jobs/record_inbox.h"

namespace muster {

// Handles the work of the inbox in rounds: gives records to their jobs, stores what the jobs have
// to store with one sync each, acks, and ends jobs. Also ends what time decides, every half second.
// It owns no state that another thread uses. A full disk is retried: no records are read meanwhile.
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
    // Verifies the signature of a final record (VerifyFinal); null: not verified.
    std::function<absl::Status(const v1::JobRecord& final)> verify;
  };

  explicit JobWriter(Parts parts);
  // Ends after the current round.
  ~JobWriter() = default;

 private:
  void Run(const std::stop_token& stop);
  void Round(RecordInbox::Work work, bool tick, const std::stop_token& stop);
  void DropUnsigned(v1::JobRecords* records);
  void Receive(const v1::JobRecord& record);
  bool StoreAll(const std::stop_token& stop);
  void Ack(const std::deque<RecordInbox::Batch>& batches);
  void Finish(const std::string& id, RunningJob& job);
  void RemoveOld();

  const Parts parts_;
  PendingAcks acks_;
  LogLimiter unsigned_;  // by node
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_WRITER_H_
