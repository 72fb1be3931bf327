// Generated from system.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_SYSTEM_H_
#define MUSTER_SERVICES_COMMON_ERRORS_SYSTEM_H_

#include <string_view>

#include "absl/status/status.h"

// System calls.
namespace muster::errors {

// RESOURCE_EXHAUSTED, DISK_FULL.
absl::Status NoSpaceLeft(std::string_view what, std::string_view subject, std::string_view why);
// NOT_FOUND, FILE_NOT_FOUND.
absl::Status FileNotFound(std::string_view what, std::string_view subject, std::string_view why);
// PERMISSION_DENIED, FILE_NOT_ACCESSIBLE.
absl::Status FileNotAccessible(std::string_view what, std::string_view subject, std::string_view why);
// ALREADY_EXISTS, FILE_EXISTS.
absl::Status FileExists(std::string_view what, std::string_view subject, std::string_view why);
// INTERNAL, FILE_SYSTEM_NOT_WRITABLE.
absl::Status FileSystemNotWritable(std::string_view what, std::string_view subject, std::string_view why);
// INTERNAL, FILE_SYSTEM_NOT_WRITABLE.
absl::Status FolderSyncUnsupported(std::string_view path);
// INTERNAL, SYSTEM_LIMIT.
absl::Status SystemLimit(std::string_view what, std::string_view subject, std::string_view why);
// INTERNAL, IO_ERROR.
absl::Status IoError(std::string_view what, std::string_view subject, std::string_view why);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_SYSTEM_H_
