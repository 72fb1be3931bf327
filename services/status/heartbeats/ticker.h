// The thread that lets time pass for the registry.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_TICKER_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_TICKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "services/common/base/mutex.h"
#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/tcp_view.h"

namespace muster {

// Asks the kernel about peers. Look may be called by one thread.
class PeerWatch {
 public:
  // Before the first look: where the service listens.
  void set_local_port(int port) { local_port_ = static_cast<uint16_t>(port); }

  // For Registry; empty, with a line in the log now and then, if the kernel does not answer.
  std::vector<TcpState> Look(const std::vector<TcpPeer>& peers);

 private:
  std::atomic<uint16_t> local_port_ = 0;
  std::optional<TcpView> view_;
  bool failing_ = false;
};

// Ticks from its construction to its end. A thread of its own: the lag that it measures is that of
// the whole process, and nothing else delays it.
class Ticker {
 public:
  // `keep` gets the senders that changed, once a minute and at the end, on the ticking thread.
  Ticker(Registry& registry, absl::Duration tick,
         std::function<void(std::vector<SenderRecord>)> keep);

  // Stops, after a last `keep`.
  ~Ticker();

 private:
  void Run(absl::Duration tick) ABSL_LOCKS_EXCLUDED(mutex_);
  void Keep();

  Registry& registry_;
  const std::function<void(std::vector<SenderRecord>)> keep_;
  Mutex mutex_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_TICKER_H_
