// Memory that the allocator keeps.
#ifndef MUSTER_SERVICES_COMMON_BASE_FREE_MEMORY_H_
#define MUSTER_SERVICES_COMMON_BASE_FREE_MEMORY_H_

#include <cstddef>

namespace muster {

// The free memory that a process keeps for the next allocations.
inline constexpr size_t kKeptFreeBytes = size_t{32} << 20;

// Returns the whole pages that tcmalloc keeps free; 0 in a program without tcmalloc.
size_t FreeBytes();

// Returns free memory past kKeptFreeBytes to the system, a part in each call: allocations wait for
// about 3 ms meanwhile. tcmalloc itself returns memory only while a program frees more of it, so
// that a burst of large messages would stay resident in a service that is idle afterwards. Has no
// effect without tcmalloc. Thread-safe; to be called every few seconds.
void ReleaseFreeMemory();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_FREE_MEMORY_H_
