// What can go wrong on the sender's side: every reason, its code and wording once.
#ifndef MUSTER_SERVICES_CLIENT_ERRORS_H_
#define MUSTER_SERVICES_CLIENT_ERRORS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::client {

// The configuration: INVALID_ARGUMENT, reason CONFIG_INVALID. `where` is a file or "environment".
absl::Status ConfigError(std::string_view where, std::string_view field, std::string_view fault);

// The certificate is too old to try: CONFIG_INVALID, too.
absl::Status CertificateEndedError(absl::Time end);

// The source of a result.
absl::Status NotAFileError(std::string_view path);              // NOT_A_FILE
absl::Status SourceChangedError(std::string_view path);         // SOURCE_CHANGED
absl::Status SourceUnreadableError(const absl::Status& cause);  // SOURCE_UNREADABLE
absl::Status StreamFailedError(int64_t size);                   // STREAM_FAILED
absl::Status TooLargeError(std::string_view path, int64_t size, int64_t limit);  // RESULT_TOO_LARGE
absl::Status OutsideError(std::string_view path, std::string_view folder);  // DONE_FILE_OUTSIDE
absl::Status DoneFileError(std::string_view path, std::string_view fault);  // DONE_FILE_INVALID
absl::Status ArchiveError(std::string_view path, std::string_view fault);   // ARCHIVE_FAILED

// ALREADY_RUNNING (ABORTED): another process delivers the same result.
absl::Status AlreadyRunningError(std::string_view plugin, std::string_view node,
                                 std::string_view lock);

// The way to the service. UNAVAILABLE, except the last two.
absl::Status StreamBrokenError(std::string_view fault);                      // STREAM_BROKEN
absl::Status StalledError(int64_t offset);                                   // NO_PROGRESS
absl::Status ConnectionError(std::string_view url, std::string_view fault);  // CONNECTION_FAILED
absl::Status HeartbeatsEndedError();       // HEARTBEATS_LOST: the server ended the stream
absl::Status HeartbeatsUnansweredError();  // HEARTBEATS_LOST
absl::Status SpooledError(std::string_view relay, absl::Time until);  // RESULT_SPOOLED
absl::Status InterruptedError();                                      // INTERRUPTED (CANCELLED)
absl::Status DeadlineError(const absl::Status& last);  // NOT_COMMITTED_IN_TIME (DEADLINE_EXCEEDED)

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_ERRORS_H_
