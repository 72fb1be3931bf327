// Private and public keys for TLS and signatures. Keys are generated on P-256, which all peers
// (gRPC, Go, legacy sidecars) support and which signs fast. Keys on P-384 are accepted.
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
  // Takes ownership of one reference. Fails with INVALID_ARGUMENT (KEY_UNSUPPORTED) for other kinds
  // of keys.
  static absl::StatusOr<PublicKey> Adopt(EVP_PKEY* key);

  // Reads one "PUBLIC KEY" block of at most 16 KiB. Fails with INVALID_ARGUMENT (KEY_MALFORMED or
  // KEY_UNSUPPORTED).
  static absl::StatusOr<PublicKey> FromPem(std::string_view pem);

  // Returns one "PUBLIC KEY" block.
  absl::StatusOr<std::string> ToPem() const;

  // Returns the digest that identifies the key: 32 raw bytes, over its SubjectPublicKeyInfo in DER.
  absl::StatusOr<std::string> Sha256() const;

  bool operator==(const PublicKey& other) const;

  // Returns true if the private key signed `message` with `signature` (ECDSA with SHA-256, DER).
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
  // Generates a key on P-256.
  static absl::StatusOr<PrivateKey> Generate();

  // Reads PKCS#8 ("PRIVATE KEY") or SEC1 ("EC PRIVATE KEY"), at most 16 KiB. Fails with
  // INVALID_ARGUMENT: KEY_MALFORMED, also for an encrypted key, or KEY_UNSUPPORTED for other kinds.
  static absl::StatusOr<PrivateKey> FromPem(std::string_view pem);

  // Returns one "PRIVATE KEY" block.
  absl::StatusOr<Secret> ToPkcs8Pem() const;

  // Returns one "EC PRIVATE KEY" block without parameters, the only form that legacy sidecars load.
  absl::StatusOr<Secret> ToSec1Pem() const;

  // Signs `message` with ECDSA and SHA-256; returns DER.
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
