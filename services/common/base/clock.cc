#include "services/common/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace muster {
namespace {

class MachineClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  absl::Duration MonotonicNow() const override {
    return absl::FromChrono(std::chrono::steady_clock::now() - origin_);
  }

 private:
  const std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
};

}  // namespace

const Clock& SystemClock() {
  static const MachineClock* const clock = new MachineClock;  // never destroyed: threads may use it
  return *clock;
}

}  // namespace muster
