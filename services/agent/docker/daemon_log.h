// The log of a Docker daemon, as far as it differs from an output.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_DAEMON_LOG_H_
#define MUSTER_SERVICES_AGENT_DOCKER_DAEMON_LOG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "services/common/base/crc32c.h"

namespace muster {

// The bytes of one stream as the driver `local` stores them: it splits lines after 16 KiB, and
// drops the line break of a line whose length is a multiple of that (measured with Docker 20.10 and
// 24). Not thread-safe.
class DaemonLogBytes {
 public:
  // Adds bytes of the stream.
  void Add(std::string_view data) {
    size_t kept = 0;
    for (size_t at = 0; at < data.size();) {
      const size_t end = data.find('\n', at);
      if (end == std::string_view::npos) {
        line_ += data.size() - at;
        break;
      }
      line_ += end - at;
      if (line_ > 0 && line_ % kPiece == 0) {
        Keep(data.substr(kept, end - kept));
        kept = end + 1;
      }
      line_ = 0;
      at = end + 1;
    }
    Keep(data.substr(kept));
  }

  int64_t bytes() const { return bytes_; }
  // Returns the CRC32C of the bytes.
  uint32_t crc() const { return crc_; }

 private:
  static constexpr size_t kPiece = size_t{16} << 10;

  void Keep(std::string_view data) {
    bytes_ += static_cast<int64_t>(data.size());
    crc_ = ExtendCrc32c(crc_, data);
  }

  int64_t bytes_ = 0;
  uint32_t crc_ = 0;
  size_t line_ = 0;  // bytes since the last line break
};

// The part of a stream that was received before its log is read from the first byte on. A full log
// loses its beginning, so the content is compared. Not thread-safe.
class ReceivedBytes {
 public:
  ReceivedBytes() = default;
  explicit ReceivedBytes(const DaemonLogBytes& received)
      : left_(received.bytes()), crc_(received.crc()) {}

  // Returns the part of the next bytes of the log that was not received.
  std::string_view Skip(std::string_view data) {
    const size_t again = std::min(data.size(), static_cast<size_t>(left_));
    found_ = ExtendCrc32c(found_, data.substr(0, again));
    left_ -= static_cast<int64_t>(again);
    return data.substr(again);
  }

  // Returns whether the log, once it was read, did not begin with the received bytes.
  bool missing() const { return left_ > 0 || found_ != crc_; }

 private:
  int64_t left_ = 0;
  uint32_t crc_ = 0;
  uint32_t found_ = 0;
};

// The daemon splits a log into files of the same size, and removes the oldest file when one more
// is due.
inline constexpr int64_t kDaemonLogFiles = 16;

// Tells from the content of a log whether the daemon may have removed a file of it. That is
// certain only if nothing that was received before can be compared. Not thread-safe.
class DaemonLogSize {
 public:
  // Adds bytes that were read from the log.
  void Add(std::string_view data) {
    bytes_ += static_cast<int64_t>(data.size());
    lines_ += std::count(data.begin(), data.end(), '\n');
  }

  // Returns whether the log may have been full. `file_size` is the size of a file of the log.
  bool full(int64_t file_size) const { return MostBytes() >= (kDaemonLogFiles - 1) * file_size; }

 private:
  // An entry of the driver `local` has at most 31 bytes beside those of its line, and 106 if the
  // line has several entries (measured with Docker 20.10 to 28).
  int64_t MostBytes() const { return bytes_ + (bytes_ / kPiece + 1) * 256 + lines_ * 40; }

  static constexpr int64_t kPiece = int64_t{16} << 10;

  int64_t bytes_ = 0;
  int64_t lines_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_DAEMON_LOG_H_
