// The destination of job records from children: the job log of the root relay, or the parent.
#ifndef MUSTER_SERVICES_RELAY_JOBS_RECORD_SINK_H_
#define MUSTER_SERVICES_RELAY_JOBS_RECORD_SINK_H_

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// Thread-safe.
class RecordSink {
 public:
  // Called once when the records are stored or sent, or are dropped. The caller reads the next
  // message of that child only then, which bounds the memory of each child.
  using Done = absl::AnyInvocable<void()>;

  virtual ~RecordSink() = default;

  virtual void Receive(v1::JobRecords records, Done done) = 0;

  // A record is refused, and its stream ends. Only the root relay ends targets, and tells why.
  virtual void NoteRefused(const v1::JobRecord& /*record*/, const absl::Status& /*why*/) {}
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_RECORD_SINK_H_
