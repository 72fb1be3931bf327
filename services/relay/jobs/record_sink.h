// Where records of jobs go from a child: into the job log at the centre, or up to the parent.
#ifndef MUSTER_SERVICES_RELAY_JOBS_RECORD_SINK_H_
#define MUSTER_SERVICES_RELAY_JOBS_RECORD_SINK_H_

#include "absl/functional/any_invocable.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// Thread-safe.
class RecordSink {
 public:
  // Called once when there is room for more; until then nothing else is read from that child. That
  // is what bounds memory: a child has one message here at a time.
  using Taken = absl::AnyInvocable<void()>;

  virtual ~RecordSink() = default;

  virtual void Take(v1::JobRecords records, Taken taken) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_RECORD_SINK_H_
