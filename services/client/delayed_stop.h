// Delays a stop as legacy sidecars do.
#ifndef MUSTER_SERVICES_CLIENT_DELAYED_STOP_H_
#define MUSTER_SERVICES_CLIENT_DELAYED_STOP_H_

#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "services/common/base/backoff.h"

namespace muster::client {

// The time for which a sidecar continues after a stop: its plugin was stopped at the same time and
// may still write its result.
inline constexpr absl::Duration kStopGrace = absl::Seconds(60);

// A stop token that is triggered some time after another one. Thread-safe.
class DelayedStop {
 public:
  DelayedStop(absl::Duration delay, const std::stop_token& outer)
      : waiter_([this, delay, outer](const std::stop_token& done) {
          std::stop_source either;
          const std::stop_callback on_outer(outer, [&] { either.request_stop(); });
          const std::stop_callback on_done(done, [&] { either.request_stop(); });
          if (WaitFor(absl::Hours(24 * 365), either.get_token())) return;
          if (!done.stop_requested() && WaitFor(delay, done)) late_.request_stop();
        }) {}

  std::stop_token token() const { return late_.get_token(); }

 private:
  std::stop_source late_;
  std::jthread waiter_;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_DELAYED_STOP_H_
