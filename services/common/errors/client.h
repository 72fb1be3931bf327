// Generated from client.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_CLIENT_H_
#define MUSTER_SERVICES_COMMON_ERRORS_CLIENT_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

// The client library.
namespace muster::errors {

// INVALID_ARGUMENT, INVALID_CONFIG.
absl::Status ConfigInvalid(std::string_view where, std::string_view field, std::string_view fault);
// INVALID_ARGUMENT, INVALID_CONFIG.
absl::Status CertificateEnded(absl::Time end);
// INVALID_ARGUMENT, NOT_A_FILE.
absl::Status NotARegularFile(std::string_view path);
// ABORTED, SOURCE_CHANGED.
absl::Status SourceChanged(std::string_view path);
// ABORTED, SOURCE_UNREADABLE.
absl::Status SourceUnreadable(std::string_view why, std::string_view next_step);
// ABORTED, STREAM_FAILED.
absl::Status StreamFailed(int64_t size);
// OUT_OF_RANGE, RESULT_TOO_LARGE.
absl::Status ResultTooLarge(std::string_view path, int64_t size, int64_t limit);
// PERMISSION_DENIED, DONE_FILE_OUTSIDE.
absl::Status DoneFileOutside(std::string_view path, std::string_view folder);
// INVALID_ARGUMENT, DONE_FILE_INVALID.
absl::Status DoneFileInvalid(std::string_view path, std::string_view fault);
// INTERNAL, ARCHIVE_FAILED.
absl::Status ArchiveFailed(std::string_view path, std::string_view fault);
// ABORTED, ALREADY_RUNNING.
absl::Status DeliveryAlreadyRunning(std::string_view plugin, std::string_view node, std::string_view lock);
// UNAVAILABLE, STREAM_BROKEN.
absl::Status StreamBroken(std::string_view fault);
// UNAVAILABLE, NO_PROGRESS.
absl::Status NoUploadProgress(int64_t offset);
// UNAVAILABLE, CONNECTION_FAILED.
absl::Status ConnectionFailed(std::string_view url, std::string_view fault);
// UNAVAILABLE, HEARTBEATS_LOST.
absl::Status HeartbeatsEnded();
// UNAVAILABLE, HEARTBEATS_LOST.
absl::Status HeartbeatsUnanswered();
// UNAVAILABLE, RESULT_SPOOLED.
absl::Status ResultSpooled(std::string_view relay, absl::Time until);
// CANCELLED, INTERRUPTED.
absl::Status Interrupted();
// DEADLINE_EXCEEDED, NOT_COMMITTED_IN_TIME.
absl::Status NotCommittedInTime(std::string_view last, std::string_view next_step);
// ALREADY_EXISTS, RESULT_CONFLICT.
absl::Status ErrorConflict(std::string_view plugin, std::string_view node);
// ALREADY_EXISTS, RESULT_CONFLICT.
absl::Status ConflictAtListener(std::string_view answer);
// FAILED_PRECONDITION, RUN_SEALED.
absl::Status SealedAtListener(std::string_view answer);
// PERMISSION_DENIED, NOT_YOURS.
absl::Status NotYoursAtListener(std::string_view answer);
// INVALID_ARGUMENT, RESULT_TOO_LARGE.
absl::Status TooLargeForListener(std::string_view answer);
// INVALID_ARGUMENT, HTTP_REFUSED.
absl::Status RefusedByListener(std::string_view answer);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_CLIENT_H_
