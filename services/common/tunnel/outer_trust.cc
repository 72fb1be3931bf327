#include "services/common/tunnel/outer_trust.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kMaxIssuer = 100;

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, Deleter<Free>>;
using Store = Owned<X509_STORE, X509_STORE_free>;

// Returns null if `pem` is no certificate.
Store StoreOf(const std::string& pem) {
  const Owned<BIO, BIO_free_all> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Store store(X509_STORE_new());
  if (bio == nullptr || store == nullptr) return nullptr;
  const Owned<X509, X509_free> root(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (root == nullptr || X509_STORE_add_cert(store.get(), root.get()) != 1) return nullptr;
  return store;
}

Store StoreOfMachine() {
  Store store(X509_STORE_new());
  if (store == nullptr || X509_STORE_set_default_paths(store.get()) != 1) return nullptr;
  return store;
}

bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address;
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

// An empty host is not compared.
bool Leads(X509* leaf, STACK_OF(X509) * chain, const Store& store, const std::string& host) {
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  if (store == nullptr || context == nullptr ||
      X509_STORE_CTX_init(context.get(), store.get(), leaf, chain) != 1) {
    return false;
  }
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER);
  if (!host.empty()) {
    const int set = IsAddress(host) ? X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str())
                                    : X509_VERIFY_PARAM_set1_host(parameters, host.c_str(), 0);
    if (set != 1) return false;
  }
  return X509_verify_cert(context.get()) == 1;
}

std::string IssuerOf(X509* leaf) {
  std::array<char, 256> text{};
  X509_NAME_oneline(X509_get_issuer_name(leaf), text.data(), static_cast<int>(text.size()));
  std::string issuer(text.data());
  std::ranges::replace_if(issuer, [](char c) { return !absl::ascii_isprint(c); }, '?');
  return issuer.substr(0, kMaxIssuer);
}

}  // namespace

std::string OuterTrust(SSL* ssl, const std::string& host, const std::string& fleet_root_pem) {
  X509* const leaf = SSL_get0_peer_certificate(ssl);
  if (leaf == nullptr) return "TLS not verified: no certificate";
  STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl);
  std::string trust;
  if (!fleet_root_pem.empty() && Leads(leaf, chain, StoreOf(fleet_root_pem), "")) {
    trust = "TLS verified by the root of the fleet";
  } else if (Leads(leaf, chain, StoreOfMachine(), host)) {
    trust = "TLS verified by the roots of this machine";
  } else {
    trust = absl::StrCat("TLS not verified: issued by ", IssuerOf(leaf));
  }
  ERR_clear_error();  // of the attempts
  return trust;
}

}  // namespace muster
