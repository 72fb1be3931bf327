// Closes connections that exceed limits which gRPC does not have.
#ifndef MUSTER_SERVICES_COMMON_RPC_CONNECTION_CLOSER_H_
#define MUSTER_SERVICES_COMMON_RPC_CONNECTION_CLOSER_H_

#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "services/common/base/log_limiter.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/close_connection.h"
#include "services/common/rpc/rpc_metrics.h"

namespace muster {

// Checks the connections of the listeners of a server each second, and soon after a flood of calls,
// but at most ten times a second. It has its own thread, because a check takes long if there
// are many connections, and must not wait for other work. Thread-safe, but for Start.
class ConnectionCloser {
 public:
  struct Listener {
    int port = 0;
    ConnectionLimits limits;
  };

  explicit ConnectionCloser(const RpcMetrics& metrics) : metrics_(metrics) {}

  // Waits for a check in progress.
  ~ConnectionCloser();

  ConnectionCloser(const ConnectionCloser&) = delete;
  ConnectionCloser& operator=(const ConnectionCloser&) = delete;

  // Begins to check. Call it once, when the listeners have their ports.
  void Start(std::vector<Listener> listeners);

  // Closes a connection soon, because its calls are a flood; never waits. `peer` is as
  // grpc::ServerContext::peer returns it; `uri` is that of its certificate, or empty.
  void CloseFlood(const std::string& peer, int local_port, std::string_view uri)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The URI by local port and peer.
  using Floods = std::map<std::pair<int, std::string>, std::string>;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Check(const Floods& floods);

  const RpcMetrics& metrics_;
  std::vector<Listener> listeners_;
  LogLimiter log_;
  Mutex mutex_;
  CondVar changed_;
  Floods floods_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CONNECTION_CLOSER_H_
