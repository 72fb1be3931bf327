// Delivers what the spool holds, as soon as there is a way up.
#ifndef MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
#define MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/relay/proxy/way_up.h"
#include "services/relay/spool/spool.h"

namespace muster {

// Sweeps it, too. Threads of its own, which may wait for disk and network; each carries one result
// at a time. What a later try cannot cure ends a result: it is counted and logged. Thread-safe.
class SpoolDrain {
 public:
  SpoolDrain(Spool& spool, WayUp& way);

  // Stops: what is under way is cut off, and delivered by a later life.
  ~SpoolDrain();

 private:
  void Run(const std::stop_token& stop);
  void RunOnce(const std::stop_token& stop);
  void SweepIfDue();
  void Rest(absl::Duration delay, const std::stop_token& stop);
  absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token& stop);
  absl::Status TellExpired(const SpoolDelivery& delivery, const std::stop_token& stop);
  void Wake();

  Spool& spool_;
  WayUp& way_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  uint64_t events_ = 0;  // guarded by mutex_: how often something changed
  absl::Time swept_;     // guarded by mutex_
  std::shared_ptr<void> watch_;
  std::vector<std::jthread> threads_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_H_
