// How much output of a command is in transit to the root relay.
#ifndef MUSTER_SERVICES_AGENT_JOBS_SEND_WINDOW_H_
#define MUSTER_SERVICES_AGENT_JOBS_SEND_WINDOW_H_

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// The limit of the output in transit without an ack. It grows while acks arrive about as soon as
// the fastest one did: the path has no queue, and a longer path needs more bytes in transit for the
// same rate. It shrinks when they come late: commands, cancellations and records of other jobs
// would wait behind this output. Not thread-safe. Source: TCP Vegas compares delays in this way
// (Brakmo, Peterson: TCP Vegas, 1995).
class SendWindow {
 public:
  static constexpr int64_t kMin = int64_t{64} << 10;  // bytes
  static constexpr int64_t kMax = int64_t{4} << 20;

  int64_t size() const { return size_; }  // bytes

  // Notes that a record waits for an ack, because the window is full.
  void NoteFull() { full_ = true; }

  // Notes that this number of bytes was acked, this time after the last of them was sent.
  void HandleAck(int64_t bytes, absl::Duration delay);

 private:
  int64_t size_ = kMin;
  bool full_ = false;  // since the last ack
  absl::Duration fastest_ = absl::InfiniteDuration();
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_SEND_WINDOW_H_
