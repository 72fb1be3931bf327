#include "services/common/identity/pkcs12.h"

#include <openssl/pkcs12.h>

#include <memory>

#include "services/common/errors/identity.h"

namespace muster {
namespace {

constexpr int kIterations = 100'000;

struct Free {
  void operator()(PKCS12* file) const { PKCS12_free(file); }
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};

}  // namespace

absl::StatusOr<Secret> MakePkcs12(const PrivateKey& key, std::span<const Certificate> chain,
                                  std::string_view label, std::string_view password) {
  const std::unique_ptr<STACK_OF(X509), Free> others(sk_X509_new_null());
  if (chain.empty() || !others) return errors::Pkcs12Failed();
  for (const Certificate& certificate : chain.subspan(1)) {
    if (sk_X509_push(others.get(), certificate.get()) == 0) return errors::Pkcs12Failed();
  }
  const std::unique_ptr<PKCS12, Free> file(PKCS12_create(
      std::string(password).c_str(), std::string(label).c_str(), key.get(), chain.front().get(),
      others.get(), NID_aes_256_cbc, NID_aes_256_cbc, kIterations, -1, 0));
  if (!file) return errors::Pkcs12Failed();
  const std::string pass(password);
  if (PKCS12_set_mac(file.get(), pass.c_str(), static_cast<int>(pass.size()), nullptr, 0,
                     kIterations, EVP_sha256()) != 1) {
    return errors::Pkcs12Failed();
  }
  unsigned char* der = nullptr;
  const int size = i2d_PKCS12(file.get(), &der);
  if (size <= 0) return errors::Pkcs12Failed();
  Secret bytes(std::string(reinterpret_cast<char*>(der), static_cast<size_t>(size)));
  OPENSSL_clear_free(der, static_cast<size_t>(size));
  return bytes;
}

}  // namespace muster
