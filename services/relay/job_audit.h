// The audit records of jobs.
#ifndef MUSTER_SERVICES_RELAY_JOB_AUDIT_H_
#define MUSTER_SERVICES_RELAY_JOB_AUDIT_H_

#include <grpcpp/channel.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/audit.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/timers.h"
#include "services/common/service/audit_sender.h"

namespace muster {

// Sends the records of jobs that the audit log lacks to the aggregator (audit_sender.h). Jobs do
// not wait for that. The disk contains which records were not stored yet (JobBoard::Unaudited).
// Thread-safe.
class JobAudit {
 public:
  using Record = v1::RecordJobRequest;
  using Sender = AuditSender<Record>;
  using Done = Sender::Done;
  using Send = Sender::Send;

  static constexpr size_t kMaxInFlight = Sender::kMaxInFlight;
  static constexpr absl::Duration kRetryAfter = Sender::kRetryAfter;

  // As in Sender::Parts; the subject of a record is its job.
  struct Parts {
    std::function<std::vector<Record>(size_t limit)> unaudited;
    std::function<absl::Status(const Record& record)> mark_audited;
    Send send;
  };

  // `timers` and `executor` outlive it.
  JobAudit(Parts parts, TimerService& timers, Executor& executor);

  // There are more records.
  void Wake() { sender_.Wake(); }

 private:
  Sender sender_;
};

// Returns a function that sends records to the current aggregator, which may be null.
JobAudit::Send SendToAggregator(std::function<std::shared_ptr<grpc::Channel>()> aggregator);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOB_AUDIT_H_
