#include "services/common/rpc/stuck_readers.h"

namespace muster {

int DropStuckReaders(CallCanceller& calls, const Clock& clock, absl::Duration limit) {
  return calls.CancelStuck(clock.MonotonicNow(), limit);
}

}  // namespace muster
