#include "services/common/blob/files/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <climits>

namespace muster {

uint32_t ExtendCrc32c(uint32_t crc, std::string_view data) {
  uint32_t state = ~crc;  // the library leaves the standard inversions to its caller
  while (!data.empty()) {
    const int step = static_cast<int>(std::min<size_t>(data.size(), INT_MAX));
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    state = crc32_iscsi(bytes, step, state);
    data.remove_prefix(static_cast<size_t>(step));
  }
  return ~state;
}

}  // namespace muster
