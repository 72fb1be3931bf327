#include "services/common/identity/aes_gcm.h"

#include <openssl/evp.h>

#include <utility>

#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

using CipherPtr = OpenSslPtr<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>;

const unsigned char* Bytes(std::string_view s) {
  return reinterpret_cast<const unsigned char*>(s.data());
}
unsigned char* Bytes(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }

// Null for a key of another size.
const EVP_CIPHER* CipherFor(std::string_view key) {
  if (key.size() == 16) return EVP_aes_128_gcm();
  return key.size() == 32 ? EVP_aes_256_gcm() : nullptr;
}

}  // namespace

std::optional<std::string> GcmSeal(std::string_view key, std::string_view nonce,
                                   std::string_view associated, std::string_view plain) {
  const EVP_CIPHER* const cipher = CipherFor(key);
  if (cipher == nullptr || nonce.size() != kGcmNonceSize) return std::nullopt;
  const CipherPtr context(EVP_CIPHER_CTX_new());
  std::string sealed(plain.size() + kGcmTagSize, '\0');
  int size = 0;
  const bool ok =
      context != nullptr &&
      EVP_EncryptInit_ex(context.get(), cipher, nullptr, Bytes(key), Bytes(nonce)) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &size, Bytes(associated),
                        static_cast<int>(associated.size())) == 1 &&
      EVP_EncryptUpdate(context.get(), Bytes(sealed), &size, Bytes(plain),
                        static_cast<int>(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), Bytes(sealed) + size, &size) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kGcmTagSize,
                          Bytes(sealed) + plain.size()) == 1;
  if (!ok) return std::nullopt;
  return sealed;
}

std::optional<Secret> GcmOpen(std::string_view key, std::string_view nonce,
                              std::string_view associated, std::string_view sealed) {
  const EVP_CIPHER* const cipher = CipherFor(key);
  if (cipher == nullptr || nonce.size() != kGcmNonceSize || sealed.size() < kGcmTagSize) {
    return std::nullopt;
  }
  const CipherPtr context(EVP_CIPHER_CTX_new());
  std::string plain(sealed.size() - kGcmTagSize, '\0');
  std::string tag(sealed.substr(plain.size()));
  int size = 0;
  const bool ok =
      context != nullptr &&
      EVP_DecryptInit_ex(context.get(), cipher, nullptr, Bytes(key), Bytes(nonce)) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &size, Bytes(associated),
                        static_cast<int>(associated.size())) == 1 &&
      EVP_DecryptUpdate(context.get(), Bytes(plain), &size, Bytes(sealed),
                        static_cast<int>(plain.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kGcmTagSize, tag.data()) == 1 &&
      EVP_DecryptFinal_ex(context.get(), Bytes(plain) + size, &size) == 1;
  Secret opened(std::move(plain));
  if (ok) return opened;
  DrainOpenSslErrors();
  return std::nullopt;
}

}  // namespace muster
