// Keys: P-256, which all our peers (gRPC, Go, old sidecars) take and which signs fast; P-384, which
// they take too, is accepted.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_KEY_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_KEY_H_

#include <openssl/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/identity/secret.h"

namespace muster {

// A public key on P-256 or P-384. An immutable value, cheap to copy; thread-safe.
class PublicKey {
 public:
  // Takes over one reference. INVALID_ARGUMENT, reason KEY_UNSUPPORTED, if it is of another kind.
  static absl::StatusOr<PublicKey> Adopt(EVP_PKEY* key);

  // One "PUBLIC KEY" block, at most 16 KiB. INVALID_ARGUMENT: reason KEY_MALFORMED or
  // KEY_UNSUPPORTED.
  static absl::StatusOr<PublicKey> FromPem(std::string_view pem);

  // One "PUBLIC KEY" block.
  absl::StatusOr<std::string> ToPem() const;

  // Names the key: 32 raw bytes, over its SubjectPublicKeyInfo in DER.
  absl::StatusOr<std::string> Sha256() const;

  bool operator==(const PublicKey& other) const;

  // Whether `signature` (ECDSA with SHA-256, DER) over `message` was made by this key's owner.
  bool Verify(std::string_view message, std::string_view signature) const;

  // Never null; owned by this object.
  EVP_PKEY* get() const { return key_.get(); }

 private:
  friend class PrivateKey;
  explicit PublicKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}

  std::shared_ptr<EVP_PKEY> key_;
};

// A private key on P-256 or P-384. An immutable value, cheap to copy; thread-safe. The key's memory
// is wiped with the last copy.
class PrivateKey {
 public:
  // A new key on P-256.
  static absl::StatusOr<PrivateKey> Generate();

  // PKCS#8 ("PRIVATE KEY") or SEC1 ("EC PRIVATE KEY"), at most 16 KiB. INVALID_ARGUMENT: reason
  // KEY_MALFORMED (also for an encrypted key: nobody is there to be asked for a password) or
  // KEY_UNSUPPORTED (of another kind).
  static absl::StatusOr<PrivateKey> FromPem(std::string_view pem);

  // One "PRIVATE KEY" block.
  absl::StatusOr<Secret> ToPkcs8Pem() const;

  // One "EC PRIVATE KEY" block and nothing before it: the only form that old sidecars load.
  absl::StatusOr<Secret> ToSec1Pem() const;

  // ECDSA with SHA-256 over `message`, DER.
  absl::StatusOr<std::string> Sign(std::string_view message) const;

  PublicKey public_key() const { return PublicKey(key_); }

  // Never null; owned by this object.
  EVP_PKEY* get() const { return key_.get(); }

 private:
  explicit PrivateKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}

  std::shared_ptr<EVP_PKEY> key_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_KEY_H_
