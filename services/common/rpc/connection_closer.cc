#include "services/common/rpc/connection_closer.h"

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/log.h"
#include "services/common/rpc/accept_guard.h"
#include "services/common/rpc/frame_guard.h"
#include "services/common/rpc/peer.h"

namespace muster {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(1);
// Between two checks, whatever the number of floods.
constexpr absl::Duration kRest = absl::Milliseconds(100);

// Those that are omitted are reported again while they last.
constexpr size_t kMaxFloods = 1'000;

}  // namespace

ConnectionCloser::~ConnectionCloser() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void ConnectionCloser::Start(std::vector<Listener> listeners) {
  listeners_ = std::move(listeners);
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "connections");
}

void ConnectionCloser::CloseFlood(const std::string& peer, int local_port, std::string_view uri) {
  MutexLock lock(mutex_);
  if (floods_.size() >= kMaxFloods) return;
  floods_.try_emplace({local_port, peer}, uri);
  changed_.NotifyAll();
}

void ConnectionCloser::Run() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.WaitFor(mutex_, kRest,
                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopped_; });
    changed_.WaitFor(mutex_, kPeriod - kRest, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopped_ || !floods_.empty();
    });
    if (stopped_) return;
    const Floods floods = std::exchange(floods_, {});
    lock.Unlock();
    Check(floods);
    lock.Lock();
  }
}

void ConnectionCloser::Check(const Floods& floods) {
  if (const size_t closed = DrainUnacceptedConnections(); closed > 0) {
    metrics_.CountClosedConnections("no_descriptor", closed);
    Log(LogLevel::kError, "closed connections for want of a free file descriptor",
        {{"closed", static_cast<int64_t>(closed)}});
  }
  if (const size_t closed = DrainFloodedConnections(); closed > 0) {
    metrics_.CountClosedConnections("too_many_frames", closed);
    Log(LogLevel::kWarning,
        "closed connections whose client sent too many frames or unfinished messages",
        {{"closed", static_cast<int64_t>(closed)}});
  }
  for (size_t refused = DrainRefusedMessages(); refused > 0; --refused) {
    metrics_.CountRefused(absl::StatusCode::kResourceExhausted);
  }
  std::vector<int> ports;
  for (const Listener& listener : listeners_) ports.push_back(listener.port);
  OpenConnections connections(ports);
  for (const auto& [key, uri] : floods) {
    const auto& [port, peer] = key;
    if (!connections.Close(peer, port)) continue;
    metrics_.CountClosedConnections("flood", 1);
    // A peer without a certificate may have another port with each connection.
    const std::string source = uri.empty() ? PeerAddress(peer) : uri;
    if (const auto since = log_.Count(source, SystemClock().MonotonicNow())) {
      Log(LogLevel::kWarning, "closed the connection of a peer with too many refused calls",
          {{"peer", uri}, {"address", peer}, {"suppressed", *since - 1}});
    }
  }
  for (const auto& [port, limits] : listeners_) {
    const size_t closed = connections.CloseExcess(port, limits);
    if (closed == 0) continue;
    metrics_.CountClosedConnections("too_many", closed);
    Log(LogLevel::kWarning, "closed connections above the limit of a listener",
        {{"port", port}, {"closed", static_cast<int64_t>(closed)}});
  }
}

}  // namespace muster
