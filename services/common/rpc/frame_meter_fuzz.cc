// Reads any bytes of a connection, whole and cut in two. The count of frames must not depend on
// where the bytes are cut.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "services/common/rpc/frame_meter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t cut = bytes.size() * data[0] / 255;
  const absl::Duration now = absl::Hours(1);

  muster::FrameMeter whole;
  const std::string_view excess = whole.Read(bytes, now);

  muster::FrameMeter pieces;
  std::string_view other = pieces.Read(bytes.substr(0, cut), now);
  if (other.empty()) other = pieces.Read(bytes.substr(cut), now);

  if (excess != other || whole.TakeOpened() != pieces.TakeOpened() ||
      whole.TakeReset() != pieces.TakeReset()) {
    std::abort();
  }
  return 0;
}
