#include "services/common/tunnel/tunnel_endpoint.h"

#include <fcntl.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "services/common/base/random_id.h"
#include "services/common/tunnel/outer_trust.h"
#include "services/common/tunnel/process_socket.h"
#include "services/common/tunnel/tunnel_status.h"
#include "services/common/version.h"

namespace muster {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using asio::ip::tcp;
using LocalSocket = asio::local::stream_protocol::socket;
using Error = boost::system::error_code;

constexpr char kSubprotocol[] = "muster.tunnel.v1";
constexpr uint32_t kMaxAnswerHead = 8 << 10;
constexpr size_t kMaxReason = 60;
constexpr auto kAcceptAgain = std::chrono::milliseconds(100);

std::string Printable(absl::string_view text) {
  std::string out(text.substr(0, kMaxReason));
  std::ranges::replace_if(out, [](char c) { return !absl::ascii_isprint(c); }, '?');
  return out;
}

// Returns " (REASON)" of an error of the gateway.
std::string ReasonIn(absl::string_view body) {
  constexpr absl::string_view kMember = "\"reason\":\"";
  const size_t begin = body.find(kMember);
  if (begin == absl::string_view::npos) return "";
  body.remove_prefix(begin + kMember.size());
  return absl::StrCat(" (", Printable(body.substr(0, body.find('"'))), ")");
}

std::string BareHost(const HostPort& gateway) {
  return std::string(absl::StripPrefix(gateway.host, "wss://"));
}

// The parts of an endpoint that its connections use. Used by its thread.
struct Shared {
  TunnelOptions options;
  std::string name;
  std::string host;  // of the gateway
  std::string way;
  asio::ssl::context tls{asio::ssl::context::tls_client};
  size_t connections = 0;

  void Report(std::string trust, std::string fault) const {
    SetTunnelStatus(
        name, TunnelStatus{absl::StrCat("wss://", HostPort{host, options.gateway.port}.ToString()),
                           way, std::move(trust), std::move(fault)});
  }

  asio::io_context context{1};  // last: the connections that it destroys use the members above
};

// One connection of the caller and its WebSocket. Lives as long as an operation is pending; every
// handler runs on the thread of the endpoint.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, LocalSocket local)
      : shared_(shared),
        local_(std::move(local)),
        ws_(shared.context, shared.tls),
        resolver_(shared.context),
        deadline_(shared.context) {
    ++shared_.connections;
  }
  ~Connection() { --shared_.connections; }

  void Start() {
    const TunnelOptions& options = shared_.options;
    deadline_.expires_after(absl::ToChronoNanoseconds(options.establish_within));
    deadline_.async_wait([self = shared_from_this()](Error error) {
      if (!error) self->Fail("connect", asio::error::timed_out);
    });
    const std::string host = options.proxy ? options.proxy->host : shared_.host;
    const std::string port =
        options.proxy ? options.proxy->port : std::to_string(options.gateway.port);
    resolver_.async_resolve(host, port,
                            [self = shared_from_this()](Error error, const auto& addresses) {
                              if (error) return self->Fail("find the address", error);
                              self->Connect(addresses);
                            });
  }

 private:
  using Socket = tcp::socket;
  using Handler = void (Connection::*)();

  // Returns a handler that continues with `next`, or fails to do `what`.
  auto Then(const char* what, Handler next) {
    return [self = shared_from_this(), what, next](Error error, auto&&...) {
      if (self->ended_) return;
      if (error) return self->Fail(what, error);
      ((*self).*next)();
    };
  }

  void Connect(const tcp::resolver::results_type& addresses) {
    if (ended_) return;
    asio::async_connect(socket(), addresses, Then("connect", &Connection::OnConnected));
  }

  void OnConnected() {
    fcntl(socket().native_handle(), F_SETFD, FD_CLOEXEC);
    Error ignored;
    socket().set_option(tcp::no_delay(true), ignored);
    if (!shared_.options.proxy) return StartTls();
    const TunnelProxy& proxy = *shared_.options.proxy;
    connect_.method(http::verb::connect);
    connect_.version(11);
    connect_.target(HostPort{shared_.host, shared_.options.gateway.port}.ToString());
    connect_.set(http::field::host, std::string(connect_.target()));
    if (!proxy.credentials.empty()) {
      connect_.set(http::field::proxy_authorization,
                   absl::StrCat("Basic ", absl::Base64Escape(proxy.credentials)));
    }
    http::async_write(socket(), connect_, Then("ask the proxy", &Connection::ReadProxy));
  }

  void ReadProxy() {
    connect_ = {};  // it has the password
    proxy_answer_.skip(true);
    proxy_answer_.header_limit(kMaxAnswerHead);
    http::async_read_header(socket(), proxy_buffer_, proxy_answer_,
                            Then("read the answer of the proxy", &Connection::OnProxy));
  }

  void OnProxy() {
    const unsigned status = proxy_answer_.get().result_int();
    if (status / 100 != 2) {
      return FailWith(absl::StrCat("the proxy answers with HTTP status ", status));
    }
    // A TLS server sends nothing first.
    if (proxy_buffer_.size() != 0) return FailWith("the proxy sends more than its answer");
    StartTls();
  }

  void StartTls() {
    SSL* const ssl = ws_.next_layer().native_handle();
    static constexpr unsigned char kHttp1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    SSL_set_alpn_protos(ssl, kHttp1, sizeof(kHttp1));
    Error is_name;
    asio::ip::make_address(shared_.host, is_name);
    if (is_name) SSL_set_tlsext_host_name(ssl, shared_.host.c_str());
    ws_.next_layer().async_handshake(asio::ssl::stream_base::client,
                                     Then("shake hands by TLS", &Connection::Upgrade));
  }

  void Upgrade() {
    trust_ =
        OuterTrust(ws_.next_layer().native_handle(), shared_.host, shared_.options.fleet_root_pem);
    websocket::stream_base::timeout limits{};
    limits.handshake_timeout = absl::ToChronoNanoseconds(shared_.options.establish_within);
    limits.idle_timeout = absl::ToChronoNanoseconds(shared_.options.idle);
    limits.keep_alive_pings = true;
    ws_.set_option(limits);
    ws_.set_option(websocket::stream_base::decorator([](websocket::request_type& request) {
      request.set(http::field::sec_websocket_protocol, kSubprotocol);
      request.set(http::field::user_agent, absl::StrCat("muster/", std::string(kVersion)));
    }));
    ws_.binary(true);
    ws_.auto_fragment(false);
    ws_.write_buffer_bytes(kTunnelBuffer);
    ws_.read_message_max(0);  // a message is passed on as it arrives
    ws_.async_handshake(upgraded_, HostPort{shared_.host, shared_.options.gateway.port}.ToString(),
                        shared_.options.path, [self = shared_from_this()](Error error) {
                          if (!self->ended_) self->OnUpgraded(error);
                        });
  }

  void OnUpgraded(Error error) {
    if (error == websocket::error::upgrade_declined) {
      return FailWith(absl::StrCat("the gateway, or a proxy before it, answers with HTTP status ",
                                   upgraded_.result_int(), ReasonIn(upgraded_.body())));
    }
    if (error) return Fail("upgrade to WebSocket", error);
    if (upgraded_[http::field::sec_websocket_protocol] != kSubprotocol) {
      return FailWith("the server does not speak muster.tunnel.v1");
    }
    deadline_.cancel();
    shared_.Report(trust_, "");
    ReadLocal();
    ReadRemote();
  }

  void ReadLocal() {
    local_.async_read_some(asio::buffer(up_), [self = shared_from_this()](Error error, size_t n) {
      if (self->ended_) return;
      if (error) return self->Close();
      self->ws_.async_write(asio::buffer(self->up_.data(), n),
                            self->Then("send", &Connection::ReadLocal));
    });
  }

  void ReadRemote() {
    ws_.async_read_some(asio::buffer(down_), [self = shared_from_this()](Error error, size_t n) {
      if (self->ended_) return;
      if (error || !self->ws_.got_binary()) return self->EndRemote(error);
      asio::async_write(self->local_, asio::buffer(self->down_.data(), n),
                        self->Then("pass on", &Connection::ReadRemote));
    });
  }

  // Reports why an established tunnel has ended.
  void EndRemote(Error error) {
    const auto& reason = ws_.reason();
    std::string why = error ? error.message() : "a message that is not binary";
    if (error == websocket::error::closed) {
      why = absl::StrCat("closed with ", static_cast<int>(reason.code), ": ",
                         Printable(absl::string_view(reason.reason.data(), reason.reason.size())));
    }
    shared_.Report(trust_, absl::StrCat("it was lost: ", why));
    End();
  }

  // The caller has closed its connection.
  void Close() {
    CloseLocal();
    ended_ = true;
    ws_.async_close(websocket::close_code::normal,
                    [self = shared_from_this()](Error) { self->End(); });
  }

  void Fail(const char* what, Error error) {
    FailWith(absl::StrCat("cannot ", what, ": ", Printable(error.message())));
  }

  void FailWith(std::string fault) {
    if (ended_) return;
    shared_.Report(trust_, absl::StrCat(fault, " (", shared_.way, ")"));
    End();
  }

  void CloseLocal() {
    Error ignored;
    local_.close(ignored);
  }

  void End() {
    ended_ = true;
    CloseLocal();
    Error ignored;
    deadline_.cancel();
    resolver_.cancel();
    socket().close(ignored);
  }

  Socket& socket() { return ws_.next_layer().next_layer(); }

  Shared& shared_;
  LocalSocket local_;
  websocket::stream<asio::ssl::stream<tcp::socket>> ws_;
  tcp::resolver resolver_;
  asio::steady_timer deadline_;  // until the tunnel is established
  http::request<http::empty_body> connect_;
  beast::flat_static_buffer<kMaxAnswerHead> proxy_buffer_;
  http::response_parser<http::empty_body> proxy_answer_;
  websocket::response_type upgraded_;
  std::string trust_;
  bool ended_ = false;
  std::array<char, kTunnelBuffer> up_;
  std::array<char, kTunnelBuffer> down_;
};

class Endpoint final : public TunnelEndpoint {
 public:
  explicit Endpoint(TunnelOptions options)
      : acceptor_(shared_.context), accept_again_(shared_.context) {
    shared_.options = std::move(options);
    shared_.name = absl::StrCat(std::string(kTunnelName), RandomHex(16));
    shared_.host = BareHost(shared_.options.gateway);
    const auto& proxy = shared_.options.proxy;
    shared_.way = proxy ? absl::StrCat("through the proxy ", proxy->host, ":", proxy->port)
                        : "without a proxy";
    target_ = absl::StrCat("unix-abstract:", shared_.name);
  }

  ~Endpoint() override {
    shared_.context.stop();
    if (thread_.joinable()) thread_.join();
    SetTunnelStatus(shared_.name, std::nullopt);
  }

  absl::Status Open() {
    auto fd = ProcessSocket::Listen(shared_.name);
    if (!fd.ok()) return fd.status();
    Error error;
    acceptor_.assign(asio::local::stream_protocol(), fd->get(), error);
    if (error) return absl::InternalError(absl::StrCat("open a tunnel: ", error.message()));
    (void)fd->release();
    shared_.tls.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1 |
                            asio::ssl::context::no_sslv3);
    shared_.tls.set_verify_mode(asio::ssl::verify_none);  // OuterTrust reports instead
    shared_.Report("", "");
    Accept();
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  const std::string& target() const override { return target_; }

 private:
  // Asio throws where threads or descriptors are short, for example when it starts its resolver.
  void Run() {
    for (;;) {
      try {
        shared_.context.run();
        return;
      } catch (const std::exception& failure) {
        shared_.Report("", failure.what());
      }
    }
  }

  void Accept() {
    acceptor_.async_accept([this](Error error, LocalSocket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) {  // for example, no file descriptor is free
        accept_again_.expires_after(kAcceptAgain);
        accept_again_.async_wait([this](Error stopped) {
          if (!stopped) Accept();
        });
        return;
      }
      fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
      if (shared_.connections >= kMaxTunnelConnections) {
        shared_.Report("", absl::StrCat("this process has ", kMaxTunnelConnections, " tunnels"));
      } else if (ProcessSocket::IsOwn(socket.native_handle())) {
        std::make_shared<Connection>(shared_, std::move(socket))->Start();
      }
      Accept();
    });
  }

  Shared shared_;
  std::string target_;
  asio::local::stream_protocol::acceptor acceptor_;
  asio::steady_timer accept_again_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TunnelEndpoint>> TunnelEndpoint::Start(TunnelOptions options) {
  try {
    auto endpoint = std::make_unique<Endpoint>(std::move(options));
    if (const absl::Status opened = endpoint->Open(); !opened.ok()) return opened;
    return endpoint;
  } catch (const std::exception& failure) {  // no thread or descriptor is free
    return absl::InternalError(absl::StrCat("open a tunnel: ", failure.what()));
  }
}

}  // namespace muster
