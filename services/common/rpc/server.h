// Listeners: the one place where a Muster service opens a door for gRPC.
#ifndef MUSTER_SERVICES_COMMON_RPC_SERVER_H_
#define MUSTER_SERVICES_COMMON_RPC_SERVER_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/rpc/call_canceller.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/rpc_metrics.h"

namespace muster {

class CallAdmission;
class ConnectionCloser;

struct RpcServerOptions {
  std::string listen;         // "host:port"; port 0 takes a free one
  std::string health_listen;  // loopback "host:port" for the plaintext health service
  // Holds key.pem, cert.pem and ca.pem (the fleet's root), replaced as a whole when they change.
  std::string certificate_folder;
  // Called for every RPC, after the certificate was verified.
  std::function<bool(const Caller&)> is_revoked;
  // Called for every RPC of a caller that is not revoked; an error refuses it. Empty: none is
  // refused. Must not block.
  std::function<absl::Status(const Caller&)> check_caller;
  // A listener for peers without a certificate, with this service alone: "host:port", or empty.
  std::string open_listen;
  grpc::Service* open_service = nullptr;
  std::string open_service_name = "muster.v1.JoinService";
  // The largest message of a peer, and the memory of gRPC for all messages in transit.
  int max_message_bytes = kMaxMessageBytes;
  size_t memory_bytes = kServerMemoryBytes;
};

// A server with TLS 1.3, client certificates that lead to the fleet's root, and a gate that admits
// a role to an RPC only by the authorisation table. It offers reflection to every verified peer and
// channelz to operators. A second, plaintext server answers health checks, and reflection, which
// Debian's library adds to every server, but none of our methods. An optional third server accepts
// peers without a certificate, and serves only `open_service`. It closes connections above the
// limits of its listeners (limits.h). Thread-safe.
class RpcServer {
 public:
  // `services` must outlive the server. INTERNAL (LISTEN_FAILED) if an address cannot be bound.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      RpcServerOptions options, CallerResolver& callers, CallCanceller& canceller,
      RpcMetrics& metrics, const std::vector<grpc::Service*>& services);

  // Stops immediately if Stop was not called.
  ~RpcServer();

  int port() const { return port_; }
  int health_port() const { return health_port_; }
  // 0 without such a listener.
  int open_port() const { return open_port_; }

  // Sets the answer of the health service.
  void SetServing(bool serving);

  // Accepts no new calls, waits for those in progress until `deadline`, then cancels them.
  void Stop(absl::Time deadline);

 private:
  class Gate;

  RpcServer(CallCanceller& canceller, RpcMetrics& metrics);

  CallCanceller& canceller_;
  const std::unique_ptr<ConnectionCloser> closer_;
  const std::unique_ptr<CallAdmission> calls_;
  const std::unique_ptr<CallAdmission> open_calls_;
  std::shared_ptr<void> failed_handshakes_;  // keeps them counted
  // The queues of all servers (LeavePollingToCallbacks); they are drained after the servers have
  // ended.
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> unused_queues_;
  std::unique_ptr<grpc::Server> health_server_;
  std::unique_ptr<grpc::Server> open_server_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  int health_port_ = 0;
  int open_port_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_SERVER_H_
