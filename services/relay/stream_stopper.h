// Ends streams when the relay stops.
#ifndef MUSTER_SERVICES_RELAY_STREAM_STOPPER_H_
#define MUSTER_SERVICES_RELAY_STREAM_STOPPER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"

namespace muster {

// Knows the open streams that last for as long as their peers want. A server that stops waits for
// its streams, so these end first, and no new one begins. Thread-safe.
class StreamStopper {
 public:
  // Ends one stream with this status. Must not block.
  using EndStream = std::function<void(const absl::Status& why)>;
  // Removes the stream when its last copy is destroyed, also after the stopper.
  using Ticket = std::shared_ptr<void>;

  // Adds a stream. UNAVAILABLE (RELAY_STOPPING) after EndAll. `end` may be called until shortly
  // after the ticket is destroyed, so it shares the stream.
  absl::StatusOr<Ticket> Add(EndStream end);

  // Ends all streams with RELAY_STOPPING.
  void EndAll();

 private:
  struct Streams {
    Mutex mutex;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
    uint64_t last ABSL_GUARDED_BY(mutex) = 0;
    std::map<uint64_t, EndStream> open ABSL_GUARDED_BY(mutex);
  };

  const std::shared_ptr<Streams> streams_ = std::make_shared<Streams>();
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_STREAM_STOPPER_H_
