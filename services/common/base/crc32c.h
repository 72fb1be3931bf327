// CRC32C (Castagnoli) in its usual form: RFC 3720 appendix B.4, with initial value and final
// inversion. It detects accidental changes, but no attacks.
#ifndef MUSTER_SERVICES_COMMON_BASE_CRC32C_H_
#define MUSTER_SERVICES_COMMON_BASE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace muster {

// Returns the CRC of bytes with CRC `crc` followed by `data`.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view data);

// Returns the CRC of bytes with CRC `crc` followed by `next_size` bytes with CRC `next_crc`,
// without reading them.
uint32_t CombineCrc32c(uint32_t crc, uint32_t next_crc, uint64_t next_size);

inline uint32_t Crc32c(std::string_view data) { return ExtendCrc32c(0, data); }

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_CRC32C_H_
