// Ed25519 keys, with which operators sign commands. TLS uses P-256 (key.h).
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_KEY_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_KEY_H_

#include <openssl/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/secret.h"

namespace muster {

// A public key. An immutable value, cheap to copy; thread-safe.
class SigningPublicKey {
 public:
  // Reads one "PUBLIC KEY" block of at most 16 KiB. Fails with INVALID_ARGUMENT (INVALID_KEY) if it
  // cannot be read or is not an Ed25519 key.
  static absl::StatusOr<SigningPublicKey> FromPem(std::string_view pem);

  // Returns the certified key. Fails in the same way.
  static absl::StatusOr<SigningPublicKey> Of(const Certificate& certificate);

  // Returns one "PUBLIC KEY" block.
  absl::StatusOr<std::string> ToPem() const;

  // Returns true if the private key signed `message` with `signature` (64 bytes).
  bool Verify(std::string_view message, std::string_view signature) const;

  // Never null; owned by this object.
  EVP_PKEY* get() const { return key_.get(); }

 private:
  friend class SigningKey;
  explicit SigningPublicKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}

  std::shared_ptr<EVP_PKEY> key_;
};

// An immutable value, cheap to copy; thread-safe. The key's memory is wiped with the last copy.
class SigningKey {
 public:
  static absl::StatusOr<SigningKey> Generate();

  // Reads PKCS#8 ("PRIVATE KEY"), unencrypted, at most 16 KiB. Fails with INVALID_ARGUMENT
  // (INVALID_KEY).
  static absl::StatusOr<SigningKey> FromPem(std::string_view pem);

  // Returns one "PRIVATE KEY" block.
  absl::StatusOr<Secret> ToPem() const;

  // Signs the message itself, not a hash of it; returns 64 bytes.
  absl::StatusOr<std::string> Sign(std::string_view message) const;

  SigningPublicKey public_key() const { return SigningPublicKey(key_); }

 private:
  explicit SigningKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}

  std::shared_ptr<EVP_PKEY> key_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_KEY_H_
