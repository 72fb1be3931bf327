// The file contains 32 random bytes as 64 hexadecimal digits and a line end. A wrapped key is
//
//   version (1 byte, 1) | key id (8) | nonce (12) | ciphertext | tag (16)
//
// The key id is the beginning of the SHA-256 of a label and the key. The ciphertext is the key's
// PKCS#8 PEM. A label for the use of the key, the version, the key id and the run id are
// authenticated with it. Nonces are random: safe for 2^32 keys under one key-encryption key (NIST
// SP 800-38D, 8.3).
#include "services/common/identity/key_wrap.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

constexpr size_t kKeySize = 32;
constexpr size_t kKeyIdSize = 8;
constexpr size_t kNonceSize = 12;
constexpr size_t kTagSize = 16;
constexpr size_t kHeaderSize = 1 + kKeyIdSize;
constexpr size_t kMaxWrapped = 16 * 1024;
constexpr char kVersion = 1;

using CipherPtr = OpenSslPtr<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>;

const unsigned char* Bytes(std::string_view s) {
  return reinterpret_cast<const unsigned char*>(s.data());
}
unsigned char* Bytes(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }

constexpr std::string_view kAuthorityKey = "muster run authority key";
constexpr std::string_view kStatusKey = "muster status listener key";

std::string AssociatedData(std::string_view label, std::string_view header, std::string_view run) {
  return absl::StrCat(ToAbsl(label), ToAbsl(header), ToAbsl(run));
}

absl::StatusOr<std::string> KeyId(std::string_view key) {
  const Secret labelled(absl::StrCat("muster store key id", ToAbsl(key)));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  if (EVP_Digest(labelled.view().data(), labelled.view().size(), digest.data(), nullptr,
                 EVP_sha256(), nullptr) != 1) {
    return OpenSslError("hash the store key");
  }
  return std::string(reinterpret_cast<const char*>(digest.data()), kKeyIdSize);
}

bool Seal(std::string_view key, std::string_view nonce, std::string_view associated,
          std::string_view plain, std::string& out) {
  const CipherPtr context(EVP_CIPHER_CTX_new());
  const size_t start = out.size();
  out.resize(start + plain.size() + kTagSize);
  unsigned char* to = Bytes(out) + start;
  int size = 0;
  return context != nullptr &&
         EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce)) ==
             1 &&
         EVP_EncryptUpdate(context.get(), nullptr, &size, Bytes(associated),
                           static_cast<int>(associated.size())) == 1 &&
         EVP_EncryptUpdate(context.get(), to, &size, Bytes(plain),
                           static_cast<int>(plain.size())) == 1 &&
         EVP_EncryptFinal_ex(context.get(), to + size, &size) == 1 &&
         EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagSize, to + plain.size()) ==
             1;
}

// Decrypts into `plain`, which must have the size of the ciphertext. If it returns false, `plain`
// must not be used.
bool Unseal(std::string_view key, std::string_view nonce, std::string_view associated,
            std::string_view sealed, std::string& plain) {
  const CipherPtr context(EVP_CIPHER_CTX_new());
  std::string tag(sealed.substr(plain.size()));
  int size = 0;
  return context != nullptr &&
         EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce)) ==
             1 &&
         EVP_DecryptUpdate(context.get(), nullptr, &size, Bytes(associated),
                           static_cast<int>(associated.size())) == 1 &&
         EVP_DecryptUpdate(context.get(), Bytes(plain), &size, Bytes(sealed),
                           static_cast<int>(plain.size())) == 1 &&
         EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kTagSize, tag.data()) == 1 &&
         EVP_DecryptFinal_ex(context.get(), Bytes(plain) + size, &size) == 1;
}

}  // namespace

absl::StatusOr<KeyWrap> KeyWrap::OpenOrCreate(const std::string& path) {
  auto existing = Open(path);
  if (existing.status().code() != absl::StatusCode::kNotFound) return existing;
  std::string key(kKeySize, '\0');
  if (RAND_bytes(Bytes(key), kKeySize) != 1) return OpenSslError("make a store key");
  const Secret secret(std::move(key));
  const Secret text(absl::StrCat(absl::BytesToHexString(ToAbsl(secret.view())), "\n"));
  RETURN_IF_ERROR(WriteFileAtomically(path, text.view()));
  return Open(path);
}

absl::StatusOr<KeyWrap> KeyWrap::Open(const std::string& path) {
  ASSIGN_OR_RETURN(auto content, ReadSecretFile(path));
  const Secret text(std::move(content));
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  if (text.view().size() != 2 * kKeySize + 1 || text.view().back() != '\n' ||
      text.view().find_first_not_of(kHexDigits) != 2 * kKeySize) {
    return errors::StoreKeyMalformed(path);
  }
  Secret key(absl::HexStringToBytes(ToAbsl(text.view().substr(0, 2 * kKeySize))));
  ASSIGN_OR_RETURN(auto id, KeyId(key.view()));
  return KeyWrap(std::move(key), std::move(id));
}

absl::StatusOr<std::string> KeyWrap::WrapText(std::string_view label, std::string_view plain,
                                              std::string_view run) const {
  std::string nonce(kNonceSize, '\0');
  if (RAND_bytes(Bytes(nonce), kNonceSize) != 1) return OpenSslError("make a nonce");
  std::string wrapped = absl::StrCat(std::string(1, kVersion), key_id_);
  const std::string associated = AssociatedData(label, wrapped, run);
  wrapped += nonce;
  if (!Seal(key_.view(), nonce, associated, plain, wrapped)) {
    return OpenSslError("encrypt a run's key");
  }
  return wrapped;
}

absl::StatusOr<Secret> KeyWrap::UnwrapText(std::string_view label, std::string_view wrapped,
                                           std::string_view run) const {
  const auto damaged = [&] {
    DrainOpenSslErrors();
    return errors::WrappedKeyDamaged(run);
  };
  if (wrapped.size() <= kHeaderSize + kNonceSize + kTagSize || wrapped.size() > kMaxWrapped ||
      wrapped.front() != kVersion) {
    return damaged();
  }
  const std::string_view header = wrapped.substr(0, kHeaderSize);
  if (header.substr(1) != key_id_) {
    return errors::StoreKeyMismatch(run);
  }
  const std::string_view nonce = wrapped.substr(kHeaderSize, kNonceSize);
  const std::string_view sealed = wrapped.substr(kHeaderSize + kNonceSize);
  std::string plain(sealed.size() - kTagSize, '\0');
  const bool ok = Unseal(key_.view(), nonce, AssociatedData(label, header, run), sealed, plain);
  Secret text(std::move(plain));
  if (!ok) return damaged();
  return text;
}

absl::StatusOr<std::string> KeyWrap::Wrap(const PrivateKey& key, std::string_view run) const {
  ASSIGN_OR_RETURN(auto plain, key.ToPkcs8Pem());
  return WrapText(kAuthorityKey, plain.view(), run);
}

absl::StatusOr<PrivateKey> KeyWrap::Unwrap(std::string_view wrapped, std::string_view run) const {
  ASSIGN_OR_RETURN(const auto pem, UnwrapText(kAuthorityKey, wrapped, run));
  return PrivateKey::FromPem(pem.view());
}

absl::StatusOr<std::string> KeyWrap::WrapStatusKey(const Secret& pem, std::string_view run) const {
  return WrapText(kStatusKey, pem.view(), run);
}

absl::StatusOr<Secret> KeyWrap::UnwrapStatusKey(std::string_view wrapped,
                                                std::string_view run) const {
  return UnwrapText(kStatusKey, wrapped, run);
}

}  // namespace muster
