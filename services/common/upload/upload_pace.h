// How much the sender of an upload may send at a time.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_PACE_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_PACE_H_

#include <algorithm>
#include <cstdint>

#include "services/common/rpc/limits.h"

namespace muster {

struct UploadPace {
  int64_t chunk_max = 0;  // raw bytes of a chunk
  int64_t window = 0;     // bytes without an acknowledgement
};

// The number of open uploads up to which chunks are large.
inline constexpr int64_t kFewUploads = 4;

// Returns the pace of an upload that is the last of `open` uploads of this process. It is large if
// there are few, for speed over slow links. Further ones get smaller windows, because this process
// and every relay between may hold the window of each, for as long as the upload lasts: 44 MiB of
// the first 16, and 512 KiB of each other.
inline UploadPace PaceOf(int64_t open) {
  const int64_t share = kUploadWindowLarge / std::max<int64_t>(open, 1);
  if (open <= kFewUploads) return {kChunkMaxLarge, share};
  return {kChunkMaxSmall, std::max<int64_t>(share / 2, kUploadWindowSmall)};
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_PACE_H_
