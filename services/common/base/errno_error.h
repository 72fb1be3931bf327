// Errors of system calls.
#ifndef MUSTER_SERVICES_COMMON_BASE_ERRNO_ERROR_H_
#define MUSTER_SERVICES_COMMON_BASE_ERRNO_ERROR_H_

#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Returns the error of an errno: "what subject: strerror". ENOSPC and EDQUOT become
// RESOURCE_EXHAUSTED with reason DISK_FULL, ENOENT becomes NOT_FOUND, EACCES and EPERM
// PERMISSION_DENIED, EEXIST ALREADY_EXISTS, EROFS INTERNAL with reason FILE_SYSTEM_NOT_WRITABLE,
// EMFILE, ENFILE and ENOMEM INTERNAL with reason SYSTEM_LIMIT: a later call may succeed,
// anything else INTERNAL with reason IO_ERROR.
absl::Status ErrnoError(int error_number, std::string_view what, std::string_view subject);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_ERRNO_ERROR_H_
