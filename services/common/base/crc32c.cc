#include "services/common/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>

namespace muster {

uint32_t ExtendCrc32c(uint32_t crc, std::string_view data) {
  constexpr size_t kStep = size_t{1} << 30;  // the library counts in int
  crc = ~crc;                                // and leaves both inversions to us
  while (!data.empty()) {
    const size_t n = std::min(data.size(), kStep);
    auto* const bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    crc = crc32_iscsi(bytes, static_cast<int>(n), crc);  // only reads
    data.remove_prefix(n);
  }
  return ~crc;
}

}  // namespace muster
