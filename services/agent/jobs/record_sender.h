// The records that this node has to report, of all its jobs.
#ifndef MUSTER_SERVICES_AGENT_JOBS_RECORD_SENDER_H_
#define MUSTER_SERVICES_AGENT_JOBS_RECORD_SENDER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/record_outbox.h"
#include "services/agent/jobs/refusals.h"
#include "services/agent/jobs/retry_gate.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/jobs/records_signature.h"

namespace muster {

// Serves the outboxes of jobs in turn, and the refusals first, until the root relay has acked their
// records. Signs final records when they are sent. After a failure of the signature or of the disk
// it tries again with a back-off; each failure is logged once. Records of a job without any ack for
// kResendAfter are sent again: the root relay drops a final record while its clock is wrong, and a
// relay may lose records. Thread-safe; calls may block on the disk.
class RecordSender {
 public:
  struct Options {
    std::string node;
    FinalSigner sign;      // null: final records are not signed
    TimerService* timers;  // outlives it, as the next
    Executor* executor;
    size_t max_refusals = 1'000;
  };

  static constexpr absl::Duration kResendAfter = absl::Minutes(2);

  // Calls `on_records` when NextRecords may return records again after a failure, or without acks.
  RecordSender(Options options, std::function<void()> on_records);
  ~RecordSender();

  // Sends the records of a job, until Remove. The outbox outlives that call.
  void Add(const std::string& job, RecordOutbox& outbox);
  void Remove(const std::string& job);

  // Sends the final record of a command that has no outbox (refusals.h).
  void AddRefusal(const std::string& job, v1::JobRecord record);

  // Adds at most 256 KiB of records that are to be sent now. Returns false if there are none.
  bool NextRecords(v1::JobRecords* records);
  void HandleAcks(const v1::RecordsAck& acks);
  // Sends all unacked records again.
  void Rewind();
  // Waits until all final records are acked. Returns false after `limit`.
  bool AwaitAcked(absl::Duration limit);

 private:
  struct Source {
    RecordOutbox* outbox;
    absl::Status failure;  // of the last read
  };

  absl::StatusOr<v1::JobRecord::RecordsSignature> Sign(const v1::JobRecord& final,
                                                       const RecordsDigest& digest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Read(const std::string& job, Source& source, const FinalSigner& sign,
            v1::JobRecords* records) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResendStalled() ABSL_LOCKS_EXCLUDED(mutex_);
  bool all_acked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::function<void()> on_records_;
  mutable Mutex mutex_;
  CondVar acked_;
  std::map<std::string, Source> sources_ ABSL_GUARDED_BY(mutex_);  // by job
  std::string last_served_ ABSL_GUARDED_BY(mutex_);                // by NextRecords
  Refusals refusals_ ABSL_GUARDED_BY(mutex_);
  absl::Status sign_failure_ ABSL_GUARDED_BY(mutex_);
  RetryGate signing_;
  RetryGate reading_;  // of all outboxes that failed
  bool awaits_acks_ ABSL_GUARDED_BY(mutex_) = false;
  ScheduledTask resend_;  // while awaits_acks_; last, because it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_RECORD_SENDER_H_
