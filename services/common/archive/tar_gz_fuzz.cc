// Reads any bytes as a tar.gz of a stranger. An entry yields at most its size, and the whole stream
// at most what its ratio permits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "services/common/archive/tar_gz_reader.h"
#include "services/common/base/string_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr muster::GzipLimits kLimits{.ratio = 100, .free_bytes = int64_t{1} << 20};
  constexpr int64_t kBuffered = int64_t{1}
                                << 20;  // may be decompressed before the ratio is checked
  muster::StringSource source(std::string(reinterpret_cast<const char*>(data), size));
  auto reader = muster::TarGzReader::Open(source, kLimits);
  if (!reader.ok()) return 0;
  char buffer[4096];
  bool read = false;
  int64_t total = 0;
  for (auto entry = (*reader)->Next(); entry.ok() && entry->has_value();
       entry = (*reader)->Next()) {
    if ((*entry)->size < 0) std::abort();
    read = !read;  // Next skips what is not read
    int64_t got = 0;
    while (read) {
      const auto n = (*reader)->Read(buffer);
      if (!n.ok() || *n == 0) break;
      got += static_cast<int64_t>(*n);
    }
    if (got > (*entry)->size) std::abort();
    total += got;
  }
  if ((*reader)->consumed() > static_cast<int64_t>(size)) std::abort();
  if (total > kLimits.free_bytes + kBuffered + kLimits.ratio * static_cast<int64_t>(size)) {
    std::abort();
  }
  return 0;
}
