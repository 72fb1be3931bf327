// The audit records of jobs.
#ifndef MUSTER_SERVICES_RELAY_JOB_AUDIT_H_
#define MUSTER_SERVICES_RELAY_JOB_AUDIT_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "muster/v1/audit.pb.h"

namespace muster {

// Sends the records to the aggregator and does not wait. Jobs do not depend on the aggregator: if a
// record is lost, this relay logs a warning with its content. Thread-safe.
class JobAudit {
 public:
  // The bytes of the records that wait for an answer. Records past it are lost.
  static constexpr int64_t kMaxInFlight = int64_t{4} << 20;

  using Done = std::function<void(const absl::Status&)>;
  // Sends one record, and calls `done` once, from any thread.
  using Send = std::function<void(const v1::RecordJobRequest& record, Done done)>;

  explicit JobAudit(Send send) : send_(std::move(send)) {}

  void Record(const v1::RecordJobRequest& record);

 private:
  const Send send_;
  // An answer may arrive after the end of this object.
  const std::shared_ptr<std::atomic<int64_t>> in_flight_ =
      std::make_shared<std::atomic<int64_t>>(0);
};

// Returns a function that sends records to the current aggregator, which may be null.
JobAudit::Send SendToAggregator(std::function<std::shared_ptr<grpc::Channel>()> aggregator);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOB_AUDIT_H_
