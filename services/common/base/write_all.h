// Writes of all bytes to a file descriptor.
#ifndef MUSTER_SERVICES_COMMON_BASE_WRITE_ALL_H_
#define MUSTER_SERVICES_COMMON_BASE_WRITE_ALL_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Writes all bytes at the position of the descriptor, which must block, or at an offset of its
// file. Repeats a write that a signal interrupts, and continues one that writes a part. `subject`
// names the file in the error, that of ErrnoError: some of the bytes may be written then.
absl::Status WriteAll(int fd, std::string_view bytes, std::string_view subject);
absl::Status WriteAllAt(int fd, std::string_view bytes, int64_t offset, std::string_view subject);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_WRITE_ALL_H_
