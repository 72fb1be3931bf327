// Decompresses any bytes as the chunk of a peer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "services/common/base/zstd_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxRaw = 64 * 1024;
  const std::string_view frame(reinterpret_cast<const char*>(data), size);
  std::string raw;
  if (muster::DecompressFrame(frame, kMaxRaw, &raw).ok() && raw.size() > kMaxRaw) std::abort();
  std::string packed;
  muster::CompressFrame(frame, &packed);
  if (!muster::DecompressFrame(packed, size, &raw).ok() || raw != frame) std::abort();
  return 0;
}
