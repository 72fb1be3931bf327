// How much the sender of an upload may send at a time.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_PACE_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_PACE_H_

#include <cstdint>

#include "services/common/rpc/limits.h"

namespace muster {

struct UploadPace {
  int64_t chunk_max = 0;  // raw bytes of a chunk
  int64_t window = 0;     // bytes without an acknowledgement
};

// Uploads of a process with a large window at the same time: 64 MiB.
inline constexpr int64_t kFewUploads = 4;

// Returns the pace of an upload that is one of `open` uploads of this process. A few get large
// chunks and windows, for speed over slow links. Further ones get small ones, because this process
// and every relay between may hold the window of each, for as long as the upload lasts.
inline UploadPace PaceOf(int64_t open) {
  if (open <= kFewUploads) return {kChunkMaxLarge, kUploadWindowLarge};
  return {kChunkMaxSmall, kUploadWindowSmall};
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_PACE_H_
