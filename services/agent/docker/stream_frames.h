// The output of a container, as the Docker Engine API multiplexes it.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_STREAM_FRAMES_H_
#define MUSTER_SERVICES_AGENT_DOCKER_STREAM_FRAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

enum class ContainerStream { kStdout, kStderr };

// Receives bytes of a stream in their order. `data` is valid during the call.
using ContainerOutputSink = std::function<void(ContainerStream stream, std::string_view data)>;

// Splits the frames of an attach or a log: 8 bytes (the stream, three zeros, the big-endian length)
// and the payload. Holds no payload in memory. Not thread-safe.
//
// The stream 3 is not documented: it carries an error of the daemon instead of output.
class StreamFrames {
 public:
  explicit StreamFrames(ContainerOutputSink sink) : sink_(std::move(sink)) {}

  // Passes payloads on. `bytes` may begin and end anywhere in a frame. Fails with DATA_LOSS
  // (CONTAINER_OUTPUT_DAMAGED) if they are no frames, and with UNAVAILABLE (CONTAINER_OUTPUT_LOST)
  // for an error of the daemon; then this object is unusable.
  absl::Status Feed(std::string_view bytes);

  // Returns whether the last frame is complete.
  bool at_boundary() const { return header_size_ == 0 && left_ == 0; }

 private:
  enum class Kind { kStdin, kStdout, kStderr, kError };

  absl::Status ReadHeader();
  void ReadPayload(std::string_view payload);
  absl::Status EndFrame() const;

  const ContainerOutputSink sink_;
  std::array<unsigned char, 8> header_ = {};
  size_t header_size_ = 0;
  Kind kind_ = Kind::kStdout;
  uint32_t left_ = 0;  // bytes of the payload
  std::string error_;  // the beginning of the daemon's error
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_STREAM_FRAMES_H_
