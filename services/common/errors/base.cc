// Generated from base.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/base.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status InvalidName(std::string_view name, std::string_view what, std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                   absl::StrCat("invalid name \"", ToAbsl(name), "\" of ", ToAbsl(what), ": ", ToAbsl(problem)),
                   "Use 1 to 253 of the characters A-Z a-z 0-9 . _ - and no dot at the beginning; a new name does not begin with a hyphen either.");
}

absl::Status InvalidConfig(std::string_view mistakes, std::string_view program) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CONFIG",
                   mistakes,
                   absl::StrCat("Correct the file; `", ToAbsl(program), " --print-config` shows every field and its valid values."));
}

absl::Status InvalidProcessCommand(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_COMMAND",
                   why,
                   "Correct the command.");
}

absl::Status InvalidFrame(std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_FRAME",
                   absl::StrCat("invalid zstd frame: ", ToAbsl(problem)),
                   "Send the chunk again, or send it uncompressed.");
}

absl::Status FrameTooLarge(int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "FRAME_TOO_LARGE",
                   absl::StrCat("the zstd frame unpacks to more than ", limit, " bytes"),
                   "Send smaller chunks.");
}

absl::Status TooManyTimers(int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_TIMERS",
                   absl::StrCat("all ", limit, " timers of this process are in use"),
                   "Try again later.");
}

absl::Status DrainTimeout(int64_t tasks, std::string_view executor, absl::Duration limit) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "DRAIN_TIMEOUT",
                   absl::StrCat(tasks, " tasks of ", ToAbsl(executor), " did not finish within ", absl::FormatDuration(limit)),
                   "");
}

absl::Status NotAFolder(std::string_view path) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_A_FOLDER",
                   absl::StrCat(ToAbsl(path), " exists and is not a folder"),
                   "Move it away, or choose another path.");
}

absl::Status NotAPlainFile(std::string_view path) {
  return MakeError(absl::StatusCode::kInvalidArgument, "NOT_A_FILE",
                   absl::StrCat(ToAbsl(path), " is not a regular file"),
                   "Name a regular file.");
}

absl::Status FileTooLarge(std::string_view path, int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "FILE_TOO_LARGE",
                   absl::StrCat(ToAbsl(path), " is larger than ", limit, " bytes"),
                   "Check that this is the right file.");
}

absl::Status FileLongerThan(std::string_view path, int64_t limit) {
  return MakeError(absl::StatusCode::kOutOfRange, "FILE_TOO_LARGE",
                   absl::StrCat(ToAbsl(path), " is larger than ", limit, " bytes"),
                   "Check that this is the right file.");
}

absl::Status FileLocked(std::string_view path) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "FILE_LOCKED",
                   absl::StrCat(ToAbsl(path), " is locked by another process"),
                   "Stop the other process first.");
}

absl::Status SecretFileExposed(std::string_view path, std::string_view problem, std::string_view next_step) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SECRET_FILE_EXPOSED",
                   absl::StrCat("cannot use the secret in ", ToAbsl(path), ": ", ToAbsl(problem)),
                   next_step);
}

absl::Status LogNotWritable(std::string_view path, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "LOG_NOT_WRITABLE",
                   absl::StrCat("cannot write log file ", ToAbsl(path), ": ", ToAbsl(why)),
                   "Check the path, the owner and mode of its folder, and the disk.");
}

absl::Status PortInUse(std::string_view address, int64_t port) {
  return MakeError(absl::StatusCode::kUnavailable, "PORT_IN_USE",
                   absl::StrCat("cannot listen on ", ToAbsl(address), ":", port),
                   "Stop the program that uses the port, or configure another port.");
}

absl::Status NoSuchUser(std::string_view name) {
  return MakeError(absl::StatusCode::kNotFound, "NO_SUCH_USER",
                   absl::StrCat("user \"", ToAbsl(name), "\" not found on this machine"),
                   "Name a user of this machine.");
}

}  // namespace muster::errors
