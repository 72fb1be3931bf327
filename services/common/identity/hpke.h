// Hybrid public key encryption (RFC 9180): mode base, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256,
// AES-128-GCM. Debian's OpenSSL 3.0 has the primitives, and HPKE itself only from 3.2 on.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_HPKE_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_HPKE_H_

#include <openssl/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/identity/secret.h"

namespace muster {

// The size of a public key, and of an encapsulated key.
inline constexpr size_t kHpkeKeySize = 32;

// A private key of X25519, of a receiver. Immutable; thread-safe. Wiped with the last copy.
class HpkeKey {
 public:
  // CRYPTO_ERROR.
  static absl::StatusOr<HpkeKey> Generate();
  // From its 32 bytes.
  static absl::StatusOr<HpkeKey> FromBytes(std::string_view bytes);

  // The public key: kHpkeKeySize bytes.
  const std::string& public_key() const { return public_key_; }
  EVP_PKEY* get() const { return key_.get(); }

 private:
  HpkeKey(std::shared_ptr<EVP_PKEY> key, std::string public_key)
      : key_(std::move(key)), public_key_(std::move(public_key)) {}

  std::shared_ptr<EVP_PKEY> key_;
  std::string public_key_;
};

struct HpkeMessage {
  std::string encapsulated_key;  // kHpkeKeySize bytes
  std::string sealed;
};

// Seals one message for the holder of the key of `receiver`, with a new ephemeral key.
// INVALID_ARGUMENT (KEY_MALFORMED) if `receiver` is no usable public key, or CRYPTO_ERROR.
absl::StatusOr<HpkeMessage> HpkeSeal(std::string_view receiver, std::string_view info,
                                     std::string_view associated, std::string_view plain);
// The same with a given ephemeral key, which must not be used twice; for test vectors.
absl::StatusOr<HpkeMessage> HpkeSeal(const HpkeKey& ephemeral, std::string_view receiver,
                                     std::string_view info, std::string_view associated,
                                     std::string_view plain);

// Opens a message. DATA_LOSS (SEALED_MESSAGE_DAMAGED) if it was sealed for another key, with other
// data, or changed.
absl::StatusOr<Secret> HpkeOpen(const HpkeKey& key, const HpkeMessage& message,
                                std::string_view info, std::string_view associated);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_HPKE_H_
