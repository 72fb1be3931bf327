#include "services/common/base/free_memory.h"

#include <algorithm>

// Functions of gperftools (malloc_extension_c.h); null in tests and programs without tcmalloc.
extern "C" {
__attribute__((weak)) int MallocExtension_GetNumericProperty(const char* property, size_t* value);
__attribute__((weak)) void MallocExtension_ReleaseToSystem(size_t bytes);
}

namespace muster {
namespace {

constexpr size_t kReleasedAtOnce = size_t{32} << 20;

}  // namespace

size_t FreeBytes() {
  size_t bytes = 0;
  if (MallocExtension_GetNumericProperty != nullptr) {
    MallocExtension_GetNumericProperty("tcmalloc.pageheap_free_bytes", &bytes);
  }
  return bytes;
}

void ReleaseFreeMemory() {
  const size_t free = FreeBytes();
  if (free <= kKeptFreeBytes || MallocExtension_ReleaseToSystem == nullptr) return;
  MallocExtension_ReleaseToSystem(std::min(free - kKeptFreeBytes, kReleasedAtOnce));
}

}  // namespace muster
