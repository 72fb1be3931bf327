// The kernel's view of a peer, which gRPC does not have: whether its machine acknowledges.
//
// Asked by NETLINK_SOCK_DIAG, which tells an unprivileged process of the connections in its own
// network namespace (sock_diag(7)).
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_TCP_VIEW_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_TCP_VIEW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"
#include "services/common/rpc/tcp_peer.h"

namespace muster {

// One connection as the kernel sees it now.
struct TcpState {
  enum class Sent : uint8_t {
    kUnknown,         // there is no such connection
    kAcknowledged,    // all of it
    kWaiting,         // some of it has neither been acknowledged nor repeated yet
    kUnacknowledged,  // some of it had to be repeated
  };
  Sent sent = Sent::kUnknown;
  bool ended_here = false;  // our side closed it first
};

// Not thread-safe.
class TcpView {
 public:
  // INTERNAL if the kernel gives no such socket.
  static absl::StatusOr<TcpView> Open();

  // How each of `peers` that is connected to our port `local_port` stands, in their order. Asks the
  // kernel once or twice for every 256 of them; waits for it a second at most.
  absl::StatusOr<std::vector<TcpState>> Query(uint16_t local_port,
                                              const std::vector<TcpPeer>& peers);

 private:
  explicit TcpView(UniqueFd fd) : fd_(std::move(fd)) {}

  struct Question;
  absl::Status Ask(uint8_t family, const Question& question, std::vector<TcpState>* states);
  absl::Status ReadAnswers(const Question& question, std::vector<TcpState>* states);

  UniqueFd fd_;
  uint32_t sequence_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_TCP_VIEW_H_
