// The frames that the peer of one connection sends.
#ifndef MUSTER_SERVICES_COMMON_RPC_FRAME_METER_H_
#define MUSTER_SERVICES_COMMON_RPC_FRAME_METER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "services/common/rpc/message_meter.h"

namespace muster {

// Limits of a connection. A correct client needs far less of each.
inline constexpr size_t kMaxHeaderBlockBytes = 32 * 1024;  // four times the metadata of a call
inline constexpr int kMaxContinuations = 16;               // of one header block
// A frame counts once more for each ten settings in it: gRPC applies them to all streams.
inline constexpr int kMaxSettingsPerSecond = 100;
// gRPC for Go sends a ping each round trip of a download: 10,000 a second in a fast network.
inline constexpr int kMaxPingsPerSecond = 20'000;
// As many as calls of a node (limits.h): a call that is reset costs as much as another.
inline constexpr int kMaxResetsPerSecond = 5'000;
// Priorities, unknown frames, headers that begin no call, and data without a byte that ends no
// stream.
inline constexpr int kMaxControlFramesPerSecond = 1'000;
// A frame of data smaller than this that ends no stream costs as much as a larger one. Messages of
// streams are rarely so small, and then rare.
inline constexpr size_t kSmallData = 1024;
inline constexpr int kMaxSmallDataFramesPerSecond = 20'000;
inline constexpr int kMaxWindowUpdatesPerSecond = 100'000;

// Reads the bytes that a client sends on a connection (RFC 9113), and counts the frames that cost a
// server work although they carry no data. gRPC 1.51 has no limit for them: a header block that
// never ends, or empty frames, keep its threads busy for as long as they come, and some of them
// take memory until their answers are sent. Not thread-safe.
class FrameMeter {
 public:
  // `max_message_bytes` is the largest message: see MessageMeter.
  explicit FrameMeter(uint64_t max_message_bytes = std::numeric_limits<uint64_t>::max())
      : messages_(max_message_bytes) {}

  // Reads the next bytes. Returns an empty text, or what there is too much of; the connection has
  // to be closed then. `now` is monotonic.
  std::string_view Read(std::string_view bytes, absl::Duration now);

  // Returns how many calls the client began or reset since the previous call.
  int TakeOpened() { return std::exchange(opened_, 0); }
  int TakeReset() { return std::exchange(reset_, 0); }

  // Returns the calls to end for a message that is too large, since the previous call.
  std::vector<MessageMeter::TooLarge> TakeTooLarge() { return messages_.TakeTooLarge(); }

  // Returns the bytes of messages that have not arrived whole.
  size_t unfinished() const { return messages_.unfinished(); }
  // The server has ended a stream. Thread-safe.
  void EndStream(uint32_t stream) { messages_.End(stream); }

 private:
  enum class Part { kPreface, kHeader, kPayload, kNotAClient };

  std::string_view Count(absl::Duration now);
  std::string_view CountHeaders(bool ends);
  void EndIfLast();
  // The number of the frame's stream, without the reserved bit, which gRPC ignores.
  uint32_t stream() const;
  bool HasFlag(uint8_t flag) const { return (header_[4] & flag) != 0; }

  Part part_ = Part::kPreface;
  size_t position_ = 0;     // in the preface or the header
  uint8_t header_[9] = {};  // of the frame
  size_t payload_ = 0;      // bytes that are left of the frame

  size_t block_bytes_ = 0;
  int continuations_ = 0;
  absl::Duration second_ = -absl::InfiniteDuration();  // the begin of the counts below
  // The counts since then.
  struct Counts {
    int settings = 0;
    int pings = 0;
    int resets = 0;
    int control_frames = 0;
    int small_data = 0;
    int window_updates = 0;
  };
  Counts counts_;
  int opened_ = 0;
  int reset_ = 0;
  uint32_t last_stream_ = 0;  // that has begun
  MessageMeter messages_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_FRAME_METER_H_
