// The file contains 32 random bytes as 64 hexadecimal digits and a line end. A wrapped key is
//
//   version (1 byte, 1) | key id (8) | nonce (12) | ciphertext | tag (16)
//
// The key id is the beginning of the SHA-256 of a label and the key. The ciphertext is the key's
// PKCS#8 PEM, or the value of a secret. A label for the use, the version, the key id and the run
// id, or the reference of the secret, are authenticated with it. Nonces are random: safe for 2^32
// keys under one key-encryption key (NIST SP 800-38D, 8.3).
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
#include "services/common/identity/aes_gcm.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

constexpr size_t kKeySize = 32;
constexpr size_t kKeyIdSize = 8;
constexpr size_t kHeaderSize = 1 + kKeyIdSize;
constexpr size_t kMaxWrappedKey = 16 * 1024;
constexpr size_t kMaxWrappedSecret = kMaxSecret + 128;
constexpr char kVersion = 1;

unsigned char* Bytes(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }

constexpr std::string_view kAuthorityKey = "muster run authority key";
constexpr std::string_view kStatusKey = "muster status listener key";
constexpr std::string_view kSecret = "muster secret";

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
  std::string nonce(kGcmNonceSize, '\0');
  if (RAND_bytes(Bytes(nonce), kGcmNonceSize) != 1) return OpenSslError("make a nonce");
  const std::string wrapped = absl::StrCat(std::string(1, kVersion), key_id_);
  const std::string associated = AssociatedData(label, wrapped, run);
  const auto sealed = GcmSeal(key_.view(), nonce, associated, plain);
  if (!sealed) return OpenSslError("encrypt a stored key");
  return absl::StrCat(wrapped, nonce, *sealed);
}

absl::StatusOr<Secret> KeyWrap::UnwrapText(std::string_view label, std::string_view wrapped,
                                           std::string_view run) const {
  const auto damaged = [&] {
    DrainOpenSslErrors();
    return errors::WrappedKeyDamaged(run);
  };
  if (wrapped.size() <= kHeaderSize + kGcmNonceSize + kGcmTagSize ||
      wrapped.size() > (label == kSecret ? kMaxWrappedSecret : kMaxWrappedKey) ||
      wrapped.front() != kVersion) {
    return damaged();
  }
  const std::string_view header = wrapped.substr(0, kHeaderSize);
  if (header.substr(1) != key_id_) {
    return errors::StoreKeyMismatch(run);
  }
  const std::string_view nonce = wrapped.substr(kHeaderSize, kGcmNonceSize);
  const std::string_view sealed = wrapped.substr(kHeaderSize + kGcmNonceSize);
  auto text = GcmOpen(key_.view(), nonce, AssociatedData(label, header, run), sealed);
  if (!text) return damaged();
  return *std::move(text);
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

absl::StatusOr<std::string> KeyWrap::WrapSecret(std::string_view value,
                                                std::string_view reference) const {
  return WrapText(kSecret, value, reference);
}

absl::StatusOr<Secret> KeyWrap::UnwrapSecret(std::string_view wrapped,
                                             std::string_view reference) const {
  return UnwrapText(kSecret, wrapped, reference);
}

}  // namespace muster
