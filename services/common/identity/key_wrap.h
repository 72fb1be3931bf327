// Encryption of stored keys, those of run CAs and of status listeners, and of stored secrets. The
// key-encryption key is in a file beside the store of the aggregator or of the jobs service, so a
// copy of the database alone reveals no key and no secret.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_KEY_WRAP_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_KEY_WRAP_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/identity/key.h"
#include "services/common/identity/secret.h"

namespace muster {

// The largest value of a secret, in bytes.
inline constexpr size_t kMaxSecret = size_t{64} << 10;

// Encrypts private keys and secrets with AES-256-GCM. The destructor wipes the key. Immutable;
// thread-safe.
class KeyWrap {
 public:
  // Opens the key-encryption key at `path`, or creates it (0600, durable) if the file does not
  // exist. An existing key is never replaced, because all keys that it encrypted would be lost.
  static absl::StatusOr<KeyWrap> OpenOrCreate(const std::string& path);

  // Opens an existing key. Fails with NOT_FOUND, or with FAILED_PRECONDITION: SECRET_FILE_EXPOSED
  // if others may read it, STORE_KEY_MALFORMED if the content is not a key.
  static absl::StatusOr<KeyWrap> Open(const std::string& path);

  // Encrypts the key of the CA of `run`. Each call returns different bytes.
  absl::StatusOr<std::string> Wrap(const PrivateKey& key, std::string_view run) const;

  // Decrypts a key. Fails with DATA_LOSS: STORE_KEY_MISMATCH if another key encrypted it,
  // WRAPPED_KEY_DAMAGED if it was changed or belongs to another run.
  absl::StatusOr<PrivateKey> Unwrap(std::string_view wrapped, std::string_view run) const;

  // Encrypt and decrypt the key of the status listener of `run`, of any kind, as a PEM text of at
  // most 12 KiB. A key of a CA cannot be decrypted as one of a listener, and vice versa.
  absl::StatusOr<std::string> WrapStatusKey(const Secret& pem, std::string_view run) const;
  absl::StatusOr<Secret> UnwrapStatusKey(std::string_view wrapped, std::string_view run) const;

  // Encrypt and decrypt the value of a secret of at most kMaxSecret bytes. Another `reference` than
  // that of the encryption fails as another run does.
  absl::StatusOr<std::string> WrapSecret(std::string_view value, std::string_view reference) const;
  absl::StatusOr<Secret> UnwrapSecret(std::string_view wrapped, std::string_view reference) const;

 private:
  absl::StatusOr<std::string> WrapText(std::string_view label, std::string_view plain,
                                       std::string_view run) const;
  absl::StatusOr<Secret> UnwrapText(std::string_view label, std::string_view wrapped,
                                    std::string_view run) const;

  KeyWrap(Secret key, std::string key_id) : key_(std::move(key)), key_id_(std::move(key_id)) {}

  Secret key_;
  std::string key_id_;  // distinguishes another key from damaged data
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_KEY_WRAP_H_
