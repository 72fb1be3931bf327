#ifndef MUSTER_SERVICES_COMMON_BLOB_FILES_CRC32C_H_
#define MUSTER_SERVICES_COMMON_BLOB_FILES_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace muster {

// CRC32C (Castagnoli) of what had `crc`, followed by `data`; begin with 0.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view data);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_FILES_CRC32C_H_
