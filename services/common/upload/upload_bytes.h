// The stored bytes of an upload.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_BYTES_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/io.h"
#include "services/common/base/sha256.h"
#include "services/common/blob/blob_store.h"

namespace muster {

// The SHA-256 of the first bytes of an upload. Not thread-safe; Read blocks on the disk.
class UploadHash {
 public:
  // How many bytes it covers.
  int64_t size() const { return size_; }

  // Adds the next bytes.
  void Update(std::string_view bytes);
  // Adds the bytes of `source`, which begins at size(), up to `end`, and extends `crc32c`, which
  // covers as many bytes, unless it is null. DATA_LOSS if the source ends before.
  absl::Status Read(ByteSource& source, int64_t end, uint32_t* crc32c);

  // Only the first `size` bytes remain. A hash of bytes that were lost or removed is of no use.
  void Shorten(int64_t size);

  // Returns the digest, and starts again.
  std::string Finish();

 private:
  Sha256 sha256_;
  int64_t size_ = 0;
};

// Returns the next `limit` bytes of `source`, or all until its end.
absl::StatusOr<std::string> ReadUpTo(ByteSource& source, size_t limit);

// Publishes staged bytes as partial data, or discards them if there are none.
absl::Status PublishPartial(StagedBlob& staged, BlobStore& blobs, const std::string& name);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_BYTES_H_
