// The encryption of the stored archives of workspaces.
#ifndef MUSTER_SERVICES_JOBS_WORKSPACE_CIPHER_H_
#define MUSTER_SERVICES_JOBS_WORKSPACE_CIPHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/base/io.h"
#include "services/common/identity/aes_gcm.h"
#include "services/common/identity/secret.h"
#include "services/common/templates/workspaces.h"

namespace muster {

// The size of a data key: AES-256.
inline constexpr size_t kWorkspaceKeySize = 32;
// The bytes that the encryption adds to each part: nonce and tag.
inline constexpr size_t kSealedPartOverhead = kGcmNonceSize + kGcmTagSize;

// Returns a new random data key.
absl::StatusOr<Secret> NewWorkspaceKey();

// Returns the stored bytes of the first `size` bytes of an archive, in whole parts.
int64_t SealedSize(int64_t size);

// Encrypts the parts of one archive with AES-256-GCM and random nonces, of which 2^32 are safe
// under one key (NIST SP 800-38D, 8.3): that many parts are 1 PiB. A part that was moved to another
// place, archive or workspace cannot be decrypted. Immutable; thread-safe.
class WorkspaceCipher {
 public:
  // `archive` differs for each archive under this key. `size`: of the whole archive.
  WorkspaceCipher(Secret key, std::string_view workspace, std::string_view archive, int64_t size);

  // Encrypts the part with this index, of kWorkspacePart bytes unless it is the last one.
  absl::StatusOr<std::string> Seal(int64_t index, std::string_view part) const;

  // DATA_LOSS if it is not what Seal has returned for this index.
  absl::StatusOr<std::string> Open(int64_t index, std::string_view sealed) const;

 private:
  std::string AssociatedData(int64_t index) const;

  const Secret key_;
  const std::string context_;
};

// Reads an archive from its encrypted parts. Not thread-safe.
class SealedArchive final : public ByteSource {
 public:
  // `sealed` begins with the part `index`, and outlives this, as the cipher does. `end`: the size
  // of the archive, or where the read ends, after a whole part.
  SealedArchive(const WorkspaceCipher& cipher, ByteSource& sealed, int64_t index, int64_t end)
      : cipher_(cipher), sealed_(sealed), index_(index), end_(end) {}

  // DATA_LOSS if a part is damaged or missing; the errors of `sealed`.
  absl::StatusOr<size_t> Read(std::span<char> buffer) override;

 private:
  const WorkspaceCipher& cipher_;
  ByteSource& sealed_;
  int64_t index_;
  const int64_t end_;
  std::string part_;
  size_t read_ = 0;  // of part_
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_WORKSPACE_CIPHER_H_
