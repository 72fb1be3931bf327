#include "services/agent/vault/vault_socket.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <pthread.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "services/common/errors/templates.h"

namespace muster {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Protocol = asio::local::stream_protocol;
using Stream = beast::basic_stream<Protocol>;
using Error = boost::system::error_code;
using Request = http::request<http::string_body>;

constexpr auto kAcceptAgain = std::chrono::milliseconds(100);

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

std::string_view TokenOf(const Request& request) {
  if (const auto token = request.find("X-Vault-Token"); token != request.end()) {
    return View(token->value());
  }
  std::string_view bearer = View(request[http::field::authorization]);
  constexpr std::string_view kBearer = "Bearer ";
  return bearer.starts_with(kBearer) ? bearer.substr(kBearer.size()) : std::string_view();
}

class Connection;

// The parts of a server that its connections use, on its thread.
struct Shared {
  explicit Shared(VaultSocketOptions given) : options(std::move(given)) {}

  const VaultSocketOptions options;
  size_t connections = 0;
  std::function<void()> on_end;
  asio::io_context context{1};  // last: the connections that it destroys use the members above
};

// Lives as long as one of its operations is pending.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, Protocol::socket socket)
      : shared_(shared), stream_(std::move(socket)) {
    ++shared_.connections;
  }
  ~Connection() {
    Wipe();
    --shared_.connections;
    if (shared_.on_end) shared_.on_end();
  }

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMaxVaultHead);
    parser_->body_limit(kMaxVaultBody);
    stream_.expires_after(absl::ToChronoNanoseconds(shared_.options.idle));
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](Error error, size_t) {
      if (!error) self->Answer();
    });
  }

 private:
  void Answer() {
    const Request& request = parser_->get();
    VaultApiAnswer answer = shared_.options.api.Handle(
        {.method = View(request.method_string()),
         .target = View(request.target()),
         .token = TokenOf(request),
         .wants_wrapping = request.find("X-Vault-Wrap-TTL") != request.end()},
        absl::Now());
    if (!answer.read.empty()) shared_.options.on_read(answer.read);
    Wipe();
    response_ = {};
    response_.version(request.version());
    response_.result(static_cast<unsigned>(answer.status));
    response_.set(http::field::content_type, "application/json");
    response_.set(http::field::cache_control, "no-store");
    response_.keep_alive(request.keep_alive());
    const bool keep = response_.keep_alive();
    response_.body() = std::move(answer.body);
    response_.prepare_payload();
    http::async_write(stream_, response_, [self = shared_from_this(), keep](Error error, size_t) {
      self->Wipe();
      if (!error && keep) self->Read();
    });
  }

  void Wipe() { OPENSSL_cleanse(response_.body().data(), response_.body().size()); }

  Shared& shared_;
  Stream stream_;
  beast::flat_buffer buffer_{kMaxVaultHead + kMaxVaultBody};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

class Server final : public VaultSocket {
 public:
  explicit Server(VaultSocketOptions options)
      : shared_(std::move(options)), acceptor_(shared_.context), again_(shared_.context) {
    shared_.on_end = [this] { AcceptNext(); };
  }
  ~Server() override {
    shared_.context.stop();
    if (thread_.joinable()) thread_.join();
    shared_.on_end = nullptr;  // the connections are destroyed with the context
  }

  absl::Status Start(UniqueFd listener) {
    Error error;
    acceptor_.assign(Protocol(), listener.get(), error);
    if (error) return errors::SecretUnavailable("cannot serve its socket: " + error.message());
    (void)listener.release();
    AcceptNext();
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "vault-socket");
      shared_.context.run();
    });
    return absl::OkStatus();
  }

 private:
  void AcceptNext() {
    if (accepts_ || shared_.connections >= kMaxVaultConnections) return;
    accepts_ = true;
    acceptor_.async_accept([this](Error error, Protocol::socket socket) {
      accepts_ = false;
      if (error) return AcceptLater();
      fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
      if (shared_.options.admits(socket.native_handle())) {
        std::make_shared<Connection>(shared_, std::move(socket))->Read();
      }
      AcceptNext();
    });
  }

  // The process may have too many open files.
  void AcceptLater() {
    again_.expires_after(kAcceptAgain);
    again_.async_wait([this](Error error) {
      if (!error) AcceptNext();
    });
  }

  Shared shared_;
  Protocol::acceptor acceptor_;
  asio::steady_timer again_;
  bool accepts_ = false;  // an operation is pending
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VaultSocket>> VaultSocket::Serve(UniqueFd listener,
                                                                VaultSocketOptions options) {
  auto server = std::make_unique<Server>(std::move(options));
  if (absl::Status started = server->Start(std::move(listener)); !started.ok()) return started;
  return server;
}

}  // namespace muster
