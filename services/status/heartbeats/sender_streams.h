// The streams of one sender of heartbeats.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_SENDER_STREAMS_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_SENDER_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/status/heartbeats/sender.h"
#include "services/status/heartbeats/tcp_view.h"

namespace muster {

// How the registry reaches the sender at the other end of a stream. Thread-safe.
class SenderLink {
 public:
  virtual ~SenderLink() = default;
  // Asks for a heartbeat now.
  virtual void Probe() = 0;
  virtual void End(const absl::Status& why) = 0;
};

// The connection of a stream.
struct SenderConnection {
  std::weak_ptr<SenderLink> link;
  TcpPeer peer;
  const RelayState* relay = nullptr;  // that forwards the stream; null: a direct connection
};

// A process has one open stream for each pair that it works on. The sequences of the streams that
// closed last are kept, so that a delayed heartbeat on a later stream of the pair is recognised.
// Not thread-safe.
class SenderStreams {
 public:
  static constexpr size_t kMaxOpen = 64;

  // Opens a stream and returns its number. The stream replaces the one of the same pair, and stores
  // its link in `*replaced` if that one is open. `pair`: a hash; 0 for a stream without a pair.
  // TOO_MANY_STREAMS_OF_CALLER.
  absl::StatusOr<uint32_t> Open(uint64_t pair, SenderConnection connection,
                                std::shared_ptr<SenderLink>* replaced);

  // Closes a stream. Returns false if the stream was replaced or closed before.
  bool Close(uint32_t number);

  // Removes all streams.
  void Clear();

  // Returns the newest sequence that the stream accepted, -1 before the first; null if the stream
  // was replaced or closed.
  int64_t* FindSequence(uint32_t number);

  // Returns whether a stream is open.
  bool connected() const { return open_ > 0; }

  // Returns the links of the open streams.
  std::vector<std::shared_ptr<SenderLink>> Links() const;

  // The next functions are about the newest open stream, or about the one that closed last. Without
  // any stream they return null or an empty peer.
  std::shared_ptr<SenderLink> link() const;
  TcpPeer peer() const;
  const RelayState* relay() const;
  // Forgets the peer: the state of its connection is no evidence any more.
  void ForgetPeer();

 private:
  struct Stream {
    uint32_t number;
    uint64_t pair;
    int64_t sequence;
    SenderConnection connection;
  };
  using Iterator = std::vector<Stream>::iterator;

  Iterator FirstOpen() { return streams_.end() - static_cast<ptrdiff_t>(open_); }

  // The closed streams, the last closed one at their end; then the open ones, the newest at the
  // end.
  std::vector<Stream> streams_;
  size_t open_ = 0;
  uint32_t last_number_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_SENDER_STREAMS_H_
