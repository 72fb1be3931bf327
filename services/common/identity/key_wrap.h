// Keys of runs at rest (of their authorities and of their status listeners): encrypted in the
// aggregator's store under a key that lies in a file beside it, so that a copy of the database
// alone opens nothing.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_KEY_WRAP_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_KEY_WRAP_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/identity/key.h"
#include "services/common/identity/secret.h"

namespace muster {

// Encrypts private keys with AES-256-GCM. The key's bytes are wiped with this object. Immutable;
// thread-safe.
class KeyWrap {
 public:
  // Makes a new key-encryption key at `path` (0600, durable), unless there is one: what is wrapped
  // under a key is lost with it, so it is never replaced.
  static absl::StatusOr<KeyWrap> OpenOrCreate(const std::string& path);

  // NOT_FOUND if there is none; FAILED_PRECONDITION (SECRET_FILE_EXPOSED) if others may read it,
  // (STORE_KEY_MALFORMED) if it is no key.
  static absl::StatusOr<KeyWrap> Open(const std::string& path);

  // The encrypted key of the authority of `run`. Different each time.
  absl::StatusOr<std::string> Wrap(const PrivateKey& key, std::string_view run) const;

  // DATA_LOSS: STORE_KEY_MISMATCH if it was wrapped under another key, WRAPPED_KEY_DAMAGED if it
  // was changed or belongs to another run.
  absl::StatusOr<PrivateKey> Unwrap(std::string_view wrapped, std::string_view run) const;

  // The same for the key of the status listener of `run`, of whatever kind, as a PEM text of at
  // most 12 KiB. One kind of key is never taken for the other.
  absl::StatusOr<std::string> WrapStatusKey(const Secret& pem, std::string_view run) const;
  absl::StatusOr<Secret> UnwrapStatusKey(std::string_view wrapped, std::string_view run) const;

 private:
  absl::StatusOr<std::string> WrapText(std::string_view label, std::string_view plain,
                                       std::string_view run) const;
  absl::StatusOr<Secret> UnwrapText(std::string_view label, std::string_view wrapped,
                                    std::string_view run) const;

  KeyWrap(Secret key, std::string key_id) : key_(std::move(key)), key_id_(std::move(key_id)) {}

  Secret key_;
  std::string key_id_;  // tells another key from damaged data
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_KEY_WRAP_H_
