#ifndef MUSTER_SERVICES_COMMON_RPC_TESTING_RAW_HTTP2_CLIENT_H_
#define MUSTER_SERVICES_COMMON_RPC_TESTING_RAW_HTTP2_CLIENT_H_

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "services/common/base/unique_fd.h"

namespace muster::testing {

// The types and flags of HTTP/2 frames (RFC 9113).
enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kAck = 1;
inline constexpr uint8_t kEndStream = 1;
inline constexpr uint8_t kEndHeaders = 4;

// Returns a frame. `stream` is 0 for frames of the connection.
std::string Http2Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload);

// Returns one setting, the payload of a SETTINGS frame.
std::string Http2Setting(uint16_t id, uint32_t value);

// Returns a header for a header block, of at most 126 bytes each.
std::string LiteralHeader(std::string_view key, std::string_view value);

// A connection to a server on loopback by TLS and HTTP/2. It sends frames that a correct client
// never would. Not thread-safe.
class RawHttp2Client {
 public:
  // Connects and sends the preface with empty settings. Without `chain` it has no certificate.
  RawHttp2Client(int port, const std::string& chain, const std::string& key);

  // Sends bytes. Returns false once the server has closed the connection, or has not read for 10 s.
  bool Send(std::string_view bytes);

  // Sends the acknowledgement of the settings of the server.
  bool AckSettings() { return Send(Http2Frame(FrameType::kSettings, kAck, 0, "")); }

  // Returns HEADERS of the next stream, a call of `method`, in few bytes after the first call. The
  // same method every time. `more`: headers that follow.
  std::string NextHeaders(std::string_view method, uint8_t flags = kEndHeaders,
                          std::string_view more = "");

  // The stream of the last NextHeaders.
  uint32_t stream() const { return next_stream_ - 2; }

  // Reads and drops what the server has sent. Returns false once the server has closed the
  // connection.
  bool Drain();

  // Reads until the server closes the connection; returns false after 30 s.
  bool AwaitClosed();

  // Reads until the server has sent these bytes; returns false once it has closed the connection,
  // or after 30 s.
  bool AwaitBytes(std::string_view bytes);

  bool connected() const { return connected_; }

 private:
  bool WaitFor(short events, int limit_ms) const;

  UniqueFd socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_;
  bool connected_ = false;
  uint32_t next_stream_ = 1;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_RAW_HTTP2_CLIENT_H_
