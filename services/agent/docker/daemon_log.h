// The log of a Docker daemon, as far as it differs from an output.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_DAEMON_LOG_H_
#define MUSTER_SERVICES_AGENT_DOCKER_DAEMON_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster {

// Counts the bytes of one stream as the driver `local` stores them: it splits lines after 16 KiB,
// and drops the line break of a line whose length is a multiple of that (measured with Docker 20.10
// and 24). Not thread-safe.
class DaemonLogBytes {
 public:
  void Add(std::string_view data) {
    bytes_ += static_cast<int64_t>(data.size());
    for (size_t at = 0; at < data.size();) {
      const size_t end = data.find('\n', at);
      if (end == std::string_view::npos) {
        line_ += data.size() - at;
        return;
      }
      line_ += end - at;
      if (line_ > 0 && line_ % kPiece == 0) --bytes_;
      line_ = 0;
      at = end + 1;
    }
  }

  int64_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kPiece = size_t{16} << 10;

  int64_t bytes_ = 0;
  size_t line_ = 0;  // bytes since the last line break
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_DAEMON_LOG_H_
