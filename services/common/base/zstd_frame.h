// Independent zstd frames (RFC 8878), in which chunks are sent.
#ifndef MUSTER_SERVICES_COMMON_BASE_ZSTD_FRAME_H_
#define MUSTER_SERVICES_COMMON_BASE_ZSTD_FRAME_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

inline constexpr int kZstdLevel = 1;  // little load for a node

// Thread-safe. Both replace the content of `*out` and reuse its memory, and keep their working
// memory per thread.

// Compresses `raw` to a frame that contains its size.
void CompressFrame(std::string_view raw, std::string* out, int level = kZstdLevel);

// Decompresses the frame of a peer. INVALID_ARGUMENT (INVALID_FRAME) if it is damaged, needs a
// dictionary, or is followed by other bytes; RESOURCE_EXHAUSTED (FRAME_TOO_LARGE) if it contains
// more than `max_raw` bytes, without allocating more.
absl::Status DecompressFrame(std::string_view frame, size_t max_raw, std::string* out);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_ZSTD_FRAME_H_
