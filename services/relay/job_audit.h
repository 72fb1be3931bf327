// The audit records of jobs.
#ifndef MUSTER_SERVICES_RELAY_JOB_AUDIT_H_
#define MUSTER_SERVICES_RELAY_JOB_AUDIT_H_

#include <grpcpp/channel.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/audit.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"

namespace muster {

// Sends the records that the audit log lacks to the aggregator, those of one job one after the
// other. Jobs do not wait for that. The disk contains which records were not stored yet
// (JobBoard::Unaudited), so none is lost with this process. After a restart a record may be
// sent again; the aggregator stores it once.
//
// Has no thread: a task on the executor sends records, and waits for the disk to note the answers.
// Thread-safe.
class JobAudit {
 public:
  // The bytes of the records that wait for an answer, unless a single one is larger.
  static constexpr size_t kMaxInFlight = size_t{4} << 20;
  // Until the next attempt after a failure.
  static constexpr absl::Duration kRetryAfter = absl::Seconds(10);

  using Record = v1::RecordJobRequest;
  using Done = std::function<void(const absl::Status&)>;
  // Sends one record, and calls `done` once, from any thread.
  using Send = std::function<void(const Record& record, Done done)>;

  struct Parts {
    // Returns the records of at most `limit` jobs, those of one job in their order.
    std::function<std::vector<Record>(size_t limit)> unaudited;
    // The audit log has the record: `unaudited` does not return it again, also after a failure to
    // store that. Both are called on the executor.
    std::function<absl::Status(const Record& record)> mark_audited;
    Send send;
  };

  // `timers` and `executor` outlive it.
  JobAudit(Parts parts, TimerService& timers, Executor& executor);
  // Calls no part afterwards.
  ~JobAudit();

  // There are more records.
  void Wake() { task_.RunNow(); }

 private:
  // An answer may arrive after the end of this object.
  struct Answers {
    Mutex mutex;
    ScheduledTask* task ABSL_GUARDED_BY(mutex) = nullptr;  // null after the end
    size_t waiting ABSL_GUARDED_BY(mutex) = 0;             // for an answer
    std::vector<std::pair<Record, absl::Status>> arrived ABSL_GUARDED_BY(mutex);
  };

  void Step();
  // Returns false if a record has to be sent again.
  bool Handle(const Record& record, const absl::Status& answer);
  void SendNext();

  const Parts parts_;
  const std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
  ScheduledTask task_;
};

// Returns a function that sends records to the current aggregator, which may be null.
JobAudit::Send SendToAggregator(std::function<std::shared_ptr<grpc::Channel>()> aggregator);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOB_AUDIT_H_
