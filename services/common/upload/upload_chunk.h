// A chunk of an upload.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_CHUNK_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_CHUNK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// A piece of an upload as it came off the wire.
struct UploadChunk {
  int64_t offset = 0;
  int64_t raw_size = 0;
  uint32_t crc32c = 0;  // of the raw bytes
  bool zstd = false;    // `data` is one zstd frame
  std::string data;
};

// Returns the uncompressed bytes, `raw_size` of them. INVALID_CHUNK.
absl::StatusOr<std::string> RawBytes(UploadChunk chunk);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_CHUNK_H_
