// Ed25519 keys: what operators sign commands with. Not for TLS, where our keys are P-256 (key.h).
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

// The public half. An immutable value, cheap to copy; thread-safe.
class SigningPublicKey {
 public:
  // One "PUBLIC KEY" block, at most 16 KiB. INVALID_ARGUMENT, reason INVALID_KEY, if it cannot be
  // read or is no Ed25519 key.
  static absl::StatusOr<SigningPublicKey> FromPem(std::string_view pem);

  // The key that a certificate vouches for. The same error.
  static absl::StatusOr<SigningPublicKey> Of(const Certificate& certificate);

  // One "PUBLIC KEY" block.
  absl::StatusOr<std::string> ToPem() const;

  // Whether `signature` (64 bytes) over `message` was made by this key's owner.
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

  // PKCS#8 ("PRIVATE KEY"), unencrypted, at most 16 KiB. INVALID_ARGUMENT, reason INVALID_KEY.
  static absl::StatusOr<SigningKey> FromPem(std::string_view pem);

  // One "PRIVATE KEY" block.
  absl::StatusOr<Secret> ToPem() const;

  // 64 bytes over the message itself: Ed25519 hashes on its own.
  absl::StatusOr<std::string> Sign(std::string_view message) const;

  SigningPublicKey public_key() const { return SigningPublicKey(key_); }

 private:
  explicit SigningKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}

  std::shared_ptr<EVP_PKEY> key_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_KEY_H_
