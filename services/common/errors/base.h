// Generated from base.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_BASE_H_
#define MUSTER_SERVICES_COMMON_ERRORS_BASE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

// Files, processes and configuration.
namespace muster::errors {

// INVALID_ARGUMENT, INVALID_NAME.
absl::Status InvalidName(std::string_view name, std::string_view what, std::string_view problem);
// INVALID_ARGUMENT, INVALID_CONFIG.
absl::Status InvalidConfig(std::string_view mistakes, std::string_view program);
// INVALID_ARGUMENT, INVALID_COMMAND.
absl::Status InvalidProcessCommand(std::string_view why);
// INVALID_ARGUMENT, INVALID_FRAME.
absl::Status InvalidFrame(std::string_view problem);
// RESOURCE_EXHAUSTED, FRAME_TOO_LARGE.
absl::Status FrameTooLarge(int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_TIMERS.
absl::Status TooManyTimers(int64_t limit);
// DEADLINE_EXCEEDED, DRAIN_TIMEOUT.
absl::Status DrainTimeout(int64_t tasks, std::string_view executor, absl::Duration limit);
// FAILED_PRECONDITION, NOT_A_FOLDER.
absl::Status NotAFolder(std::string_view path);
// INVALID_ARGUMENT, NOT_A_FILE.
absl::Status NotAPlainFile(std::string_view path);
// RESOURCE_EXHAUSTED, FILE_TOO_LARGE.
absl::Status FileTooLarge(std::string_view path, int64_t limit);
// OUT_OF_RANGE, FILE_TOO_LARGE.
absl::Status FileLongerThan(std::string_view path, int64_t limit);
// FAILED_PRECONDITION, FILE_LOCKED.
absl::Status FileLocked(std::string_view path);
// FAILED_PRECONDITION, SECRET_FILE_EXPOSED.
absl::Status SecretFileExposed(std::string_view path, std::string_view problem, std::string_view next_step);
// FAILED_PRECONDITION, LOG_NOT_WRITABLE.
absl::Status LogNotWritable(std::string_view path, std::string_view why);
// UNAVAILABLE, PORT_IN_USE.
absl::Status PortInUse(std::string_view address, int64_t port);
// NOT_FOUND, NO_SUCH_USER.
absl::Status NoSuchUser(std::string_view name);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_BASE_H_
