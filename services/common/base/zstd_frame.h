// One piece of data as one independent zstd frame (RFC 8878), as chunks travel and rest.
#ifndef MUSTER_SERVICES_COMMON_BASE_ZSTD_FRAME_H_
#define MUSTER_SERVICES_COMMON_BASE_ZSTD_FRAME_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

inline constexpr int kZstdLevel = 1;  // what a node can spare while it sends

// Both keep their working memory per thread and are thread-safe; both replace `*out`, whose memory
// is used again.

// Writes `raw` as a frame that names its size.
void CompressFrame(std::string_view raw, std::string* out, int level = kZstdLevel);

// Unpacks a frame from a peer. INVALID_ARGUMENT (INVALID_FRAME) if it is broken, needs a
// dictionary, or is followed by anything; RESOURCE_EXHAUSTED (FRAME_TOO_LARGE) if it unpacks to
// more than `max_raw` bytes, of which no more are ever held.
absl::Status DecompressFrame(std::string_view frame, size_t max_raw, std::string* out);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_ZSTD_FRAME_H_
