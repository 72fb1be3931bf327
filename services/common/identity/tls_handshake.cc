#include "services/common/identity/tls_handshake.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <memory>

#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

using ContextPtr = OpenSslPtr<SSL_CTX, SSL_CTX_free>;
using SslPtr = OpenSslPtr<SSL, SSL_free>;

ContextPtr MakeContext(const TlsEnd& end, const SSL_METHOD* method, absl::Time now) {
  ContextPtr context(SSL_CTX_new(method));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_use_certificate(context.get(), end.chain.front().get());
  SSL_CTX_use_PrivateKey(context.get(), end.key.get());
  for (size_t i = 1; i < end.chain.size(); ++i) {
    SSL_CTX_add1_chain_cert(context.get(), end.chain[i].get());
  }
  for (const Certificate& root : end.roots) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), root.get());
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(context.get()), absl::ToTimeT(now));
  // Otherwise an end would complete its chain from its trusted certificates.
  SSL_CTX_set_mode(context.get(), SSL_MODE_NO_AUTO_CHAIN);
  return context;
}

// Advances one end; returns true after its handshake is complete.
bool Step(SSL* ssl, bool& failed) {
  const int result = SSL_do_handshake(ssl);
  if (result == 1) return true;
  if (SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ) failed = true;
  return false;
}

std::string Refusal(SSL* ssl) {
  const long code = SSL_get_verify_result(ssl);
  return code == X509_V_OK ? "" : X509_verify_cert_error_string(code);
}

}  // namespace

HandshakeOutcome Handshake(const TlsEnd& server, const TlsEnd& client, absl::Time now) {
  const ContextPtr server_context = MakeContext(server, TLS_server_method(), now);
  const ContextPtr client_context = MakeContext(client, TLS_client_method(), now);
  const SslPtr s(SSL_new(server_context.get()));
  const SslPtr c(SSL_new(client_context.get()));
  SSL_set_accept_state(s.get());
  SSL_set_connect_state(c.get());
  if (!client.host.empty()) {
    X509_VERIFY_PARAM* param = SSL_get0_param(c.get());
    if (X509_VERIFY_PARAM_set1_ip_asc(param, client.host.c_str()) != 1) {
      X509_VERIFY_PARAM_set1_host(param, client.host.c_str(), 0);
    }
  }
  BIO* to_server = BIO_new(BIO_s_mem());
  BIO* to_client = BIO_new(BIO_s_mem());
  BIO_set_mem_eof_return(to_server, -1);
  BIO_set_mem_eof_return(to_client, -1);
  BIO_up_ref(to_server);
  BIO_up_ref(to_client);
  SSL_set_bio(s.get(), to_server, to_client);
  SSL_set_bio(c.get(), to_client, to_server);

  bool server_done = false;
  bool client_done = false;
  bool failed = false;
  for (int round = 0; round < 10 && !failed && !(server_done && client_done); ++round) {
    client_done = Step(c.get(), failed);
    if (!failed) server_done = Step(s.get(), failed);
  }
  ERR_clear_error();
  return {Refusal(s.get()), Refusal(c.get()), server_done && client_done};
}

}  // namespace muster
