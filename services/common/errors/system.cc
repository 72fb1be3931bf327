// Generated from system.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/system.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status NoSpaceLeft(std::string_view what, std::string_view subject, std::string_view why) {
  return MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                   absl::StrCat(ToAbsl(what), " ", ToAbsl(subject), ": ", ToAbsl(why)),
                   "Free space on that file system, and try again.");
}

absl::Status FileNotFound(std::string_view what, std::string_view subject, std::string_view why) {
  return MakeError(absl::StatusCode::kNotFound, "FILE_NOT_FOUND",
                   absl::StrCat(ToAbsl(what), " ", ToAbsl(subject), ": ", ToAbsl(why)),
                   "Check the path.");
}

absl::Status FileNotAccessible(std::string_view what, std::string_view subject, std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "FILE_NOT_ACCESSIBLE",
                   absl::StrCat(ToAbsl(what), " ", ToAbsl(subject), ": ", ToAbsl(why)),
                   "Check owner and mode of the file and its folders.");
}

absl::Status FileExists(std::string_view what, std::string_view subject, std::string_view why) {
  return MakeError(absl::StatusCode::kAlreadyExists, "FILE_EXISTS",
                   absl::StrCat(ToAbsl(what), " ", ToAbsl(subject), ": ", ToAbsl(why)),
                   "Choose another name.");
}

absl::Status FileSystemNotWritable(std::string_view what, std::string_view subject, std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "FILE_SYSTEM_NOT_WRITABLE",
                   absl::StrCat(ToAbsl(what), " ", ToAbsl(subject), ": ", ToAbsl(why)),
                   "Check that the file system is mounted for writing, and the kernel's log.");
}

absl::Status FolderSyncUnsupported(std::string_view path) {
  return MakeError(absl::StatusCode::kInternal, "FILE_SYSTEM_NOT_WRITABLE",
                   absl::StrCat("sync folder ", ToAbsl(path), ": its file system cannot make names durable"),
                   "Use a folder on a local file system, such as ext4 or XFS, that is mounted for writing.");
}

absl::Status SystemLimit(std::string_view what, std::string_view subject, std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "SYSTEM_LIMIT",
                   absl::StrCat(ToAbsl(what), " ", ToAbsl(subject), ": ", ToAbsl(why)),
                   "Raise the limit of open files of the process (ulimit -n), or free memory, and try again.");
}

absl::Status IoError(std::string_view what, std::string_view subject, std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "IO_ERROR",
                   absl::StrCat(ToAbsl(what), " ", ToAbsl(subject), ": ", ToAbsl(why)),
                   "Check the disk and the kernel's log.");
}

}  // namespace muster::errors
