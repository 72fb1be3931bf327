// Acks of stored records that were not sent yet.
#ifndef MUSTER_SERVICES_RELAY_JOBS_PENDING_ACKS_H_
#define MUSTER_SERVICES_RELAY_JOBS_PENDING_ACKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// Joins the acks of a node for a while, because most records are not urgent: a node may wait for an
// ack after 64 KiB or 256 records. A node with much output is acked immediately. Not thread-safe.
class PendingAcks {
 public:
  // Adds the ack of a record. `reached`: all records of the node up to this sequence are stored.
  void Add(const v1::JobRecord& record, int64_t reached);

  // Returns the acks that are due at `now` (monotonic).
  v1::RecordsAck DequeueDue(absl::Duration now);

  size_t size() const { return pending_.size(); }

 private:
  struct Pending {
    int64_t sequence = 0;
    int64_t records = 0;  // since the last ack, as the next
    int64_t bytes = 0;    // of output
  };

  v1::RecordsAck due_;
  std::map<std::pair<std::string, std::string>, Pending> pending_;  // by job and node
  absl::Duration since_ = absl::InfiniteDuration();                 // of the oldest
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_PENDING_ACKS_H_
