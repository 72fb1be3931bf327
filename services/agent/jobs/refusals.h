// Final records of commands that have no folder, until they are acked.
#ifndef MUSTER_SERVICES_AGENT_JOBS_REFUSALS_H_
#define MUSTER_SERVICES_AGENT_JOBS_REFUSALS_H_

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/jobs/records_signature.h"

namespace muster {

// The final record of each of the last `max_records` such jobs. Not thread-safe.
class Refusals {
 public:
  Refusals(std::string node, size_t max_records)
      : node_(std::move(node)), max_records_(max_records) {}

  // Adds the final record of a job. An unacked record stays and is sent again instead: the root
  // relay may have it already, and an outcome does not change.
  void Add(const std::string& job, v1::JobRecord record);

  // Adds the unsent records to `out`, as long as it has at most `max_bytes`. `sign` as in
  // record_outbox.h.
  void NextRecords(size_t max_bytes, const FinalSigner& sign, v1::JobRecords* out);
  void Ack(const std::string& job);
  void Rewind() { sent_ = 0; }
  // As RecordOutbox::RewindIfStalled.
  bool RewindIfStalled();
  bool empty() const { return records_.empty(); }

 private:
  std::deque<v1::JobRecord>::iterator Find(const std::string& job);
  void Drop(const std::string& job);

  const std::string node_;
  const size_t max_records_;
  std::deque<v1::JobRecord> records_;
  size_t sent_ = 0;      // the number of sent ones, which are first
  std::string checked_;  // the job of the first sent one at the last RewindIfStalled
};

// Returns the final record of a command that the node refuses, or that arrives too late.
v1::JobRecord Refusal(const absl::Status& why);
v1::JobRecord TooManyJobs(size_t limit);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_REFUSALS_H_
