#include "services/status/heartbeats/tcp_view.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

// The kernel's numbers of the states (TCP_ESTABLISHED, ... in its tcp_states.h), which user space
// has in no header that goes together with linux/tcp.h.
enum State : uint8_t { kEstablished = 1, kFinWait1 = 4, kFinWait2 = 5, kClosing = 11 };

constexpr uint32_t kStates = 1 << kEstablished | 1 << kFinWait1 | 1 << kFinWait2 | 1 << kClosing;

// So that the filter stays far below the 64 KiB that the kernel takes.
constexpr size_t kPeersPerQuestion = 256;
constexpr timeval kPatience = {1, 0};

// A piece of the kernel's filter: "the far port is `port`: accept; else continue after it". A
// filter accepts by a jump to its end, and refuses by one to 4 bytes beyond.
struct PortTest {
  inet_diag_bc_op test;
  struct {
    uint8_t family;
    uint8_t prefix_length;
    int32_t port;
  } condition;  // inet_diag_hostcond without an address
  inet_diag_bc_op accept;
};
static_assert(sizeof(PortTest) == 4 + sizeof(inet_diag_hostcond) + 4);

std::vector<PortTest> MakeFilter(std::span<const TcpPeer> peers) {
  std::vector<PortTest> filter(peers.size());
  for (size_t i = 0; i < peers.size(); ++i) {
    PortTest& piece = filter[i];
    const auto to_end = static_cast<uint16_t>((peers.size() - i) * sizeof(PortTest));
    const bool last = i + 1 == peers.size();
    piece.test = {INET_DIAG_BC_D_COND, sizeof(piece.test) + sizeof(piece.condition),
                  static_cast<uint16_t>(last ? to_end + 4 : sizeof(PortTest))};
    piece.condition = {AF_UNSPEC, 0, peers[i].port};
    piece.accept = {INET_DIAG_BC_JMP, sizeof(piece.accept),
                    static_cast<uint16_t>(to_end - offsetof(PortTest, accept))};
  }
  return filter;
}

TcpPeer PeerOf(const inet_diag_msg& message) {
  TcpPeer peer;
  peer.port = ntohs(message.id.idiag_dport);
  if (message.idiag_family == AF_INET6) {
    std::memcpy(peer.address.data(), message.id.idiag_dst, 16);
  } else {
    peer.address[10] = peer.address[11] = 0xff;
    std::memcpy(peer.address.data() + 12, message.id.idiag_dst, 4);
  }
  return peer;
}

TcpState SightOf(const inet_diag_msg& message, const tcp_info& info) {
  TcpState state;
  state.ended_here = message.idiag_state != kEstablished;
  if (info.tcpi_unacked == 0) {
    state.sent = TcpState::Sent::kAcknowledged;
  } else {
    state.sent =
        info.tcpi_retransmits > 0 ? TcpState::Sent::kUnacknowledged : TcpState::Sent::kWaiting;
  }
  return state;
}

}  // namespace

struct TcpView::Question {
  uint16_t local_port;
  std::span<const TcpPeer> peers;
  size_t first;  // of these, in all that were asked for
  std::vector<PortTest> filter;
};

absl::StatusOr<TcpView> TcpView::Open() {
  UniqueFd fd(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd.valid()) return ErrnoError(errno, "open", "the kernel's view of connections");
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (setsockopt(fd.get(), SOL_SOCKET, option, &kPatience, sizeof(kPatience)) != 0) {
      return ErrnoError(errno, "set the timeout of", "the kernel's view of connections");
    }
  }
  return TcpView(std::move(fd));
}

absl::StatusOr<std::vector<TcpState>> TcpView::Query(uint16_t local_port,
                                                     const std::vector<TcpPeer>& peers) {
  std::vector<TcpState> states(peers.size());
  for (size_t first = 0; first < peers.size(); first += kPeersPerQuestion) {
    Question question;
    question.local_port = local_port;
    question.peers =
        std::span(peers).subspan(first, std::min(kPeersPerQuestion, peers.size() - first));
    question.first = first;
    question.filter = MakeFilter(question.peers);
    // A listener for any address takes IPv4 on a socket of IPv6, one for an IPv4 address does not.
    for (const uint8_t family : {AF_INET6, AF_INET}) {
      RETURN_IF_ERROR(Ask(family, question, &states));
    }
  }
  return states;
}

absl::Status TcpView::Ask(uint8_t family, const Question& question, std::vector<TcpState>* states) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
    nlattr filter;
  } message = {};
  const size_t filter_bytes = question.filter.size() * sizeof(PortTest);
  message.filter.nla_type = INET_DIAG_REQ_BYTECODE;
  message.filter.nla_len = static_cast<uint16_t>(sizeof(message.filter) + filter_bytes);
  message.request.sdiag_family = family;
  message.request.sdiag_protocol = IPPROTO_TCP;
  message.request.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  message.request.idiag_states = kStates;
  message.request.id.idiag_sport = htons(question.local_port);
  message.header.nlmsg_len = static_cast<uint32_t>(sizeof(message) + filter_bytes);
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.header.nlmsg_seq = ++sequence_;
  std::string bytes(reinterpret_cast<const char*>(&message), sizeof(message));
  bytes.append(reinterpret_cast<const char*>(question.filter.data()), filter_bytes);
  if (send(fd_.get(), bytes.data(), bytes.size(), 0) < 0) {
    return ErrnoError(errno, "ask for", "the kernel's view of connections");
  }
  return ReadAnswers(question, states);
}

absl::Status TcpView::ReadAnswers(const Question& question, std::vector<TcpState>* states) {
  alignas(nlmsghdr) char buffer[32 * 1024];
  for (;;) {
    const ssize_t received = recv(fd_.get(), buffer, sizeof(buffer), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return ErrnoError(errno, "read", "the kernel's view of connections");
    auto left = static_cast<uint32_t>(received);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_seq != sequence_) continue;  // of a question that was given up
      if (header->nlmsg_type == NLMSG_DONE) return absl::OkStatus();
      if (header->nlmsg_type == NLMSG_ERROR) {
        const auto* error = static_cast<nlmsgerr*>(NLMSG_DATA(header));
        return ErrnoError(-error->error, "ask for", "the kernel's view of connections");
      }
      const auto* message = static_cast<inet_diag_msg*>(NLMSG_DATA(header));
      tcp_info info = {};
      auto room = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof(*message)));
      const char* at = reinterpret_cast<const char*>(message + 1);
      while (room >= static_cast<int>(sizeof(nlattr))) {
        const auto* attribute = reinterpret_cast<const nlattr*>(at);
        if (attribute->nla_len < sizeof(nlattr)) break;
        if (attribute->nla_type == INET_DIAG_INFO) {
          std::memcpy(&info, attribute + 1,
                      std::min(sizeof(info), attribute->nla_len - sizeof(nlattr)));
        }
        at += NLA_ALIGN(attribute->nla_len);
        room -= NLA_ALIGN(attribute->nla_len);
      }
      const auto found = std::find(question.peers.begin(), question.peers.end(), PeerOf(*message));
      if (found == question.peers.end()) continue;
      (*states)[question.first + static_cast<size_t>(found - question.peers.begin())] =
          SightOf(*message, info);
    }
  }
}

}  // namespace muster
