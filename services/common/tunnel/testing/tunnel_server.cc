#include "services/common/tunnel/testing/tunnel_server.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <list>
#include <thread>
#include <utility>

#include "services/common/base/mutex.h"

namespace muster {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr auto kStopPoll = std::chrono::milliseconds(5);
constexpr size_t kPiece = size_t{64} << 10;

std::string PemOf(X509* certificate) {
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);  // NOLINT(google-runtime-int): OpenSSL's
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

class Server final : public TunnelServer {
 public:
  explicit Server(TunnelServerScript script) : script_(std::move(script)) {
    MakeCertificate();
    acceptor_.open(tcp::v4());
    acceptor_.bind({asio::ip::address_v4::loopback(), 0});
    acceptor_.listen();
    port_ = acceptor_.local_endpoint().port();
    thread_ = std::thread([this] { Accept(); });
  }

  ~Server() override {
    stopping_ = true;
    {
      Error ignored;
      tcp::socket wake(context_);  // ends the accept
      wake.connect({asio::ip::address_v4::loopback(), port_}, ignored);
    }
    thread_.join();
    {
      MutexLock lock(mutex_);
      for (auto& socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    for (auto& socket : sockets_) ::close(socket);
  }

  uint16_t port() const override { return port_; }
  std::string certificate_pem() const override { return certificate_pem_; }
  std::string connect_head() const override {
    MutexLock lock(mutex_);
    return connect_head_;
  }
  std::string upgrade_target() const override {
    MutexLock lock(mutex_);
    return upgrade_target_;
  }
  size_t sent() const override { return sent_; }
  int ended() const override { return ended_; }
  int close_code() const override { return close_code_; }

 private:
  void MakeCertificate() {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* const name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("inspection"), -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_EXTENSION* const names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    X509_sign(certificate, key, EVP_sha256());
    SSL_CTX_use_certificate(tls_.native_handle(), certificate);
    SSL_CTX_use_PrivateKey(tls_.native_handle(), key);
    certificate_pem_ = PemOf(certificate);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }

  void Accept() {
    for (;;) {
      Error error;
      tcp::socket socket(context_);
      acceptor_.accept(socket, error);
      if (stopping_ || error) return;
      {
        MutexLock lock(mutex_);
        sockets_.push_back(::dup(socket.native_handle()));
      }
      threads_.emplace_back(
          [this, s = std::make_shared<tcp::socket>(std::move(socket))] { Serve(std::move(*s)); });
    }
  }

  void Serve(tcp::socket socket) {
    Error error;
    if (script_.silent) {
      char byte = 0;
      while (!error) socket.read_some(asio::buffer(&byte, 1), error);
      return;
    }
    if (!script_.connect.empty() && !AnswerConnect(socket)) return;
    websocket::stream<asio::ssl::stream<tcp::socket>> ws(std::move(socket), tls_);
    ws.next_layer().handshake(asio::ssl::stream_base::server, error);
    if (!error) Upgrade(ws);
  }

  bool AnswerConnect(tcp::socket& socket) {
    Error error;
    std::string head;
    asio::read_until(socket, asio::dynamic_buffer(head), "\r\n\r\n", error);
    {
      MutexLock lock(mutex_);
      connect_head_ = head;
    }
    asio::write(socket, asio::buffer(script_.connect), error);
    return !error && script_.connect.find(" 200 ") != std::string::npos;
  }

  void Upgrade(websocket::stream<asio::ssl::stream<tcp::socket>>& ws) {
    Error error;
    beast::flat_buffer buffer;
    http::request<http::string_body> request;
    http::read(ws.next_layer(), buffer, request, error);
    if (error) return;
    {
      MutexLock lock(mutex_);
      upgrade_target_ = std::string(request.target());
    }
    if (!script_.decline.empty()) {
      asio::write(ws.next_layer(), asio::buffer(script_.decline), error);
      ws.next_layer().shutdown(error);
      return;
    }
    ws.set_option(websocket::stream_base::decorator([this](websocket::response_type& response) {
      response.set(http::field::sec_websocket_protocol, script_.subprotocol);
    }));
    ws.accept(request, error);
    if (!error) Echo(ws);
    if (error == websocket::error::closed) close_code_ = ws.reason().code;
  }

  void Echo(websocket::stream<asio::ssl::stream<tcp::socket>>& ws) {
    Error error;
    ws.binary(!script_.text);
    if (script_.end_at_once) return ws.close(websocket::close_code::going_away, error);
    while (script_.deaf && !stopping_) std::this_thread::sleep_for(kStopPoll);
    const std::string zeros(kPiece, '\0');
    while (script_.endless && !error) sent_ += ws.write(asio::buffer(zeros), error);
    while (!error) {
      beast::flat_buffer message;
      ws.read(message, error);
      if (error == websocket::error::closed) close_code_ = ws.reason().code;
      if (!error) ws.write(message.data(), error);
    }
    ++ended_;
  }

  const TunnelServerScript script_;
  asio::io_context context_;
  asio::ssl::context tls_{asio::ssl::context::tls_server};
  std::string certificate_pem_;
  tcp::acceptor acceptor_{context_};
  uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<size_t> sent_ = 0;
  std::atomic<int> close_code_ = 0;
  std::atomic<int> ended_ = 0;
  std::list<std::thread> threads_;  // used by thread_, then by the destructor
  mutable Mutex mutex_;
  std::list<int> sockets_;  // copies of the descriptors, to end the threads
  std::string connect_head_ ABSL_GUARDED_BY(mutex_);
  std::string upgrade_target_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

std::unique_ptr<TunnelServer> TunnelServer::Start(TunnelServerScript script) {
  return std::make_unique<Server>(std::move(script));
}

}  // namespace muster
