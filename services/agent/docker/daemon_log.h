// The log of a Docker daemon, as far as it differs from an output.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_DAEMON_LOG_H_
#define MUSTER_SERVICES_AGENT_DOCKER_DAEMON_LOG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "services/common/base/crc32c.h"

namespace muster {

// The bytes of one stream as the driver `local` stores them: it splits lines after 16 KiB, and
// drops the line break of a line whose length is a multiple of that (measured with Docker 20.10 and
// 24). A daemon that is killed loses the part of a line that it has not stored yet. Not
// thread-safe. Memory: 16 KiB.
class DaemonLogBytes {
 public:
  // Adds bytes of the stream.
  void Add(std::string_view data) {
    size_t kept = 0;
    size_t stored = 0;  // the end of the last entry of the log
    for (size_t at = 0; at < data.size();) {
      const size_t end = std::min(data.find('\n', at), data.size());
      line_ += end - at;
      const size_t part = line_ % kPiece;
      if (part < end - at) stored = end - part;
      at = end + 1;
      if (end == data.size()) break;
      if (line_ > 0 && part == 0) {  // the line break is dropped
        KeepStored(data.substr(kept, end - kept));
        kept = at;
      }
      stored = at;
      line_ = 0;
    }
    if (stored > kept) {
      KeepStored(data.substr(kept, stored - kept));
      kept = stored;
    }
    data.remove_prefix(std::min(kept, data.size()));
    Keep(data);
    part_.append(data);
  }

  // Removes the bytes that the daemon may not have stored: it was killed, and the log lacks them.
  void DropPart() {
    line_ -= part_.size();
    bytes_ = stored_bytes();
    crc_ = stored_crc_;
    part_.clear();
  }

  int64_t bytes() const { return bytes_; }
  // Returns the CRC32C of the bytes.
  uint32_t crc() const { return crc_; }

  // The bytes that the daemon has stored in any case, and those after them.
  int64_t stored_bytes() const { return bytes_ - static_cast<int64_t>(part_.size()); }
  uint32_t stored_crc() const { return stored_crc_; }
  const std::string& part() const { return part_; }

 private:
  static constexpr size_t kPiece = size_t{16} << 10;

  void Keep(std::string_view data) {
    bytes_ += static_cast<int64_t>(data.size());
    crc_ = ExtendCrc32c(crc_, data);
  }

  // Keeps the end of an entry of the log.
  void KeepStored(std::string_view data) {
    Keep(data);
    stored_crc_ = crc_;
    part_.clear();
  }

  int64_t bytes_ = 0;
  uint32_t crc_ = 0;
  size_t line_ = 0;  // bytes since the last line break
  uint32_t stored_crc_ = 0;
  std::string part_;  // of a line; less than a piece
};

// The part of a stream that was received before its log is read from the first byte on. A full log
// loses its beginning, so the content is compared. A part of a line that the log lacks was lost
// with its daemon: what comes in its place is new. Not thread-safe.
class ReceivedBytes {
 public:
  ReceivedBytes() = default;
  explicit ReceivedBytes(const DaemonLogBytes& received)
      : left_(received.stored_bytes()), crc_(received.stored_crc()), part_(received.part()) {}

  // Returns the part of the next bytes of the log that was not received. Valid until the next call,
  // and as long as `data`.
  std::string_view Skip(std::string_view data) {
    const size_t again = std::min(data.size(), static_cast<size_t>(left_));
    found_ = ExtendCrc32c(found_, data.substr(0, again));
    left_ -= static_cast<int64_t>(again);
    data.remove_prefix(again);
    if (matched_ == part_.size() || data.empty()) return data;
    const size_t n = std::min(data.size(), part_.size() - matched_);
    if (data.substr(0, n) == std::string_view(part_).substr(matched_, n)) {
      matched_ += n;
      return data.substr(n);
    }
    new_ = part_.substr(0, matched_).append(data);
    absent_ = static_cast<int64_t>(std::exchange(part_, std::string()).size());
    matched_ = 0;
    lost_part_ = true;
    return new_;
  }

  // Returns whether the log, once it was read, did not begin with the received bytes.
  bool missing() const {
    return left_ > 0 || found_ != crc_ || (matched_ > 0 && matched_ < part_.size());
  }

  // Returns once whether the log lacks the part of a line at the end of the received bytes: before
  // the bytes that the last call of Skip returned.
  bool DequeueLostPart() { return std::exchange(lost_part_, false); }

  // Returns how many received bytes the log, once it was read, lacks at its end.
  int64_t absent() const { return absent_ + static_cast<int64_t>(part_.size() - matched_); }

 private:
  int64_t left_ = 0;
  uint32_t crc_ = 0;
  uint32_t found_ = 0;
  std::string part_;    // expected after them
  size_t matched_ = 0;  // of its bytes
  int64_t absent_ = 0;
  bool lost_part_ = false;
  std::string new_;
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
