#include "services/relay/stream_stopper.h"

#include <utility>
#include <vector>

#include "services/common/errors/relay.h"

namespace muster {

absl::StatusOr<StreamStopper::Ticket> StreamStopper::Add(EndStream end) {
  MutexLock lock(streams_->mutex);
  if (streams_->stopping) return errors::RelayStopping();
  const uint64_t id = ++streams_->last;
  streams_->open[id] = std::move(end);
  return Ticket(nullptr, [streams = streams_, id](void*) {
    EndStream removed;  // destroyed without the mutex
    MutexLock held(streams->mutex);
    removed = std::move(streams->open.extract(id).mapped());
  });
}

void StreamStopper::EndAll() {
  std::vector<EndStream> ends;
  {
    MutexLock lock(streams_->mutex);
    streams_->stopping = true;
    for (const auto& [id, end] : streams_->open) ends.push_back(end);
  }
  for (const EndStream& end : ends) end(errors::RelayStopping());
}

}  // namespace muster
