// The unfinished messages that the peer of one connection sends.
#ifndef MUSTER_SERVICES_COMMON_RPC_MESSAGE_METER_H_
#define MUSTER_SERVICES_COMMON_RPC_MESSAGE_METER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "services/common/base/mutex.h"

namespace muster {

// The bytes of messages that have not arrived whole, of one connection. A node sends at most 16
// chunks of 1 MiB at a time (limits.h). Connections that forward the calls of others may have this
// much of each message.
inline constexpr size_t kMaxUnfinishedBytes = size_t{32} << 20;

// Streams of one connection whose client may send more: twice the open calls that gRPC accepts
// (kMaxStreamsPerConnection). A server that stops ignores new ones, which then never end.
inline constexpr size_t kMaxStreams = 2048;

// Reads the messages in the data of streams: each begins with a byte and its length in four bytes
// (gRPC over HTTP2, "Length-Prefixed-Message"). gRPC 1.51 compares a message with its largest size
// only when it is whole, grants credit for the length that the peer has declared, and keeps all of
// it. Thread-safe.
class MessageMeter {
 public:
  // `max_bytes` is the largest message, without its prefix.
  explicit MessageMeter(uint64_t max_bytes = std::numeric_limits<uint64_t>::max())
      : max_bytes_(max_bytes) {}

  // A message that its prefix declares larger than `max_bytes`. The further data of its stream is
  // ignored.
  struct TooLarge {
    uint32_t stream = 0;
    uint64_t bytes = 0;
  };

  // A stream begins. Data of other streams is ignored: it may follow the end that the server gave
  // to a call. Returns false if kMaxStreams have not ended.
  bool Begin(uint32_t stream);

  // Reads the next bytes of the stream's data. Returns false if they exceed kMaxUnfinishedBytes in
  // one message.
  bool Read(uint32_t stream, std::string_view bytes);

  // The stream has ended, or its client sends nothing more.
  void End(uint32_t stream);

  // Returns the messages that are too large since the previous call: their calls have to end.
  std::vector<TooLarge> TakeTooLarge();

  // Returns the unfinished bytes of all streams.
  size_t unfinished() const;

 private:
  static constexpr size_t kPrefix = 5;

  // The message that is being received.
  struct Message {
    size_t received = 0;
    uint64_t size = 0;  // with the prefix; unknown until it was received
  };

  const uint64_t max_bytes_;
  mutable Mutex mutex_;
  absl::flat_hash_map<uint32_t, Message> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<TooLarge> too_large_ ABSL_GUARDED_BY(mutex_);
  size_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_MESSAGE_METER_H_
