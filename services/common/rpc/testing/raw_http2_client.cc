#include "services/common/rpc/testing/raw_http2_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>

#include "absl/strings/str_cat.h"

namespace muster::testing {
namespace {

constexpr int kSendLimitMs = 10'000;
constexpr int kCloseLimitMs = 30'000;

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text.push_back(static_cast<char>(value >> shift));
  }
  return text;
}

// A literal header of HPACK with incremental indexing, whose name is an entry of the static table.
std::string IndexedHeader(uint8_t name, std::string_view value) {
  return absl::StrCat(std::string(1, static_cast<char>(0x40 | name)),
                      std::string(1, static_cast<char>(value.size())), std::string(value));
}

void UseCertificate(SSL_CTX* context, const std::string& chain, const std::string& key) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> certificates(
      BIO_new_mem_buf(chain.data(), static_cast<int>(chain.size())), BIO_free);
  for (bool first = true;; first = false) {
    X509* const certificate = PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr);
    if (certificate == nullptr) break;
    if (first) {
      SSL_CTX_use_certificate(context, certificate);
      X509_free(certificate);
    } else {
      SSL_CTX_add_extra_chain_cert(context, certificate);  // which takes it
    }
  }
  const std::unique_ptr<BIO, decltype(&BIO_free)> keys(
      BIO_new_mem_buf(key.data(), static_cast<int>(key.size())), BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> private_key(
      PEM_read_bio_PrivateKey(keys.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  SSL_CTX_use_PrivateKey(context, private_key.get());
}

}  // namespace

std::string Http2Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload) {
  return absl::StrCat(BigEndian(payload.size(), 3), BigEndian(static_cast<uint8_t>(type), 1),
                      BigEndian(flags, 1), BigEndian(stream, 4), std::string(payload));
}

std::string Http2Setting(uint16_t id, uint32_t value) {
  return BigEndian(id, 2) + BigEndian(value, 4);
}

RawHttp2Client::RawHttp2Client(int port, const std::string& chain, const std::string& key)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
      tls_(nullptr, SSL_free) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): OpenSSL writes to sockets without MSG_NOSIGNAL.
  signal(SIGPIPE, SIG_IGN);
  if (!chain.empty()) UseCertificate(context_.get(), chain, key);
  SSL_CTX_set_mode(context_.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  tls_.reset(SSL_new(context_.get()));
  static constexpr std::array<unsigned char, 3> kProtocol = {2, 'h', '2'};
  SSL_set_alpn_protos(tls_.get(), kProtocol.data(), kProtocol.size());
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return;
  const timeval limit = {kSendLimitMs / 1000, 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  SSL_set_fd(tls_.get(), socket_.get());
  if (SSL_connect(tls_.get()) != 1) return;
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  connected_ = true;
  Send(
      absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Http2Frame(FrameType::kSettings, 0, 0, "")));
}

bool RawHttp2Client::WaitFor(short events, int limit_ms) const {
  pollfd wait = {socket_.get(), events, 0};
  return poll(&wait, 1, limit_ms) == 1;
}

bool RawHttp2Client::Send(std::string_view bytes) {
  while (connected_ && !bytes.empty()) {
    const int written = SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (SSL_get_error(tls_.get(), written) != SSL_ERROR_WANT_WRITE ||
               !WaitFor(POLLOUT, kSendLimitMs)) {
      connected_ = false;
    }
  }
  return connected_;
}

std::string LiteralHeader(std::string_view key, std::string_view value) {
  std::string header(1, '\0');
  for (const std::string_view text : {key, value}) {
    header += static_cast<char>(text.size());
    header += text;
  }
  return header;
}

std::string RawHttp2Client::NextHeaders(std::string_view method, uint8_t flags,
                                        std::string_view more) {
  const bool first = next_stream_ == 1;
  std::string block = "\x83\x87";  // :method POST, :scheme https
  if (first) {
    block += IndexedHeader(4, method);               // :path
    block += IndexedHeader(1, "localhost");          // :authority
    block += IndexedHeader(31, "application/grpc");  // content-type
    block += std::string("\x40\x02te\x08trailers", 13);
  } else {
    block += "\xc1\xc0\xbf\xbe";  // the entries that the first block made, from the oldest
  }
  block += more;
  std::string frame = Http2Frame(FrameType::kHeaders, flags, next_stream_, block);
  next_stream_ += 2;
  return frame;
}

bool RawHttp2Client::Drain() {
  std::array<char, 16 * 1024> dropped;
  while (connected_) {
    const int read = SSL_read(tls_.get(), dropped.data(), dropped.size());
    if (read > 0) continue;
    if (SSL_get_error(tls_.get(), read) == SSL_ERROR_WANT_READ) break;
    connected_ = false;
  }
  return connected_;
}

bool RawHttp2Client::AwaitBytes(std::string_view bytes) {
  std::string received;
  std::array<char, 16 * 1024> next;
  while (connected_ && received.find(bytes) == std::string::npos) {
    const int read = SSL_read(tls_.get(), next.data(), next.size());
    if (read > 0) {
      received.append(next.data(), static_cast<size_t>(read));
    } else if (SSL_get_error(tls_.get(), read) != SSL_ERROR_WANT_READ) {
      connected_ = false;
    } else if (!WaitFor(POLLIN, kCloseLimitMs)) {
      return false;
    }
  }
  return connected_;
}

bool RawHttp2Client::AwaitClosed() {
  while (Drain()) {
    if (!WaitFor(POLLIN, kCloseLimitMs)) return false;
  }
  return true;
}

}  // namespace muster::testing
