#include "services/agent/jobs/send_window.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

// Delays beside the fastest one that are no queue, because disks sync at different speeds, and that
// are one.
constexpr absl::Duration kNoQueue = absl::Milliseconds(50);
constexpr absl::Duration kQueue = absl::Milliseconds(250);

}  // namespace

void SendWindow::HandleAck(int64_t bytes, absl::Duration delay) {
  fastest_ = std::min(fastest_, delay);
  const absl::Duration queued = delay - fastest_;
  // So little output makes no queue: the path has become longer, or is shared.
  if (size_ == kMin) fastest_ += queued / 8;
  const bool was_full = std::exchange(full_, false);
  // By as much as was acked: it doubles, or halves, once per round trip.
  if (queued > kQueue) {
    size_ = std::max(kMin, size_ - bytes);
  } else if (was_full && queued <= kNoQueue) {
    size_ = std::min(kMax, size_ + bytes);
  }
}

}  // namespace muster
