#include "services/client/errors.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::client {

absl::Status ConfigError(std::string_view where, std::string_view field, std::string_view fault) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, "CONFIG_INVALID",
      absl::StrCat(ToAbsl(where), ": ", ToAbsl(field), field.empty() ? "" : ": ", ToAbsl(fault)),
      "Correct the configuration; docs/agent.md describes each field.");
}

absl::Status CertificateEndedError(absl::Time end) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CONFIG_INVALID",
                   absl::StrCat("client_cert: the certificate ended at ",
                                absl::FormatTime(end, absl::UTCTimeZone())),
                   "Ask an operator for a new one: muster credentials export.");
}

absl::Status NotAFileError(std::string_view path) {
  return MakeError(absl::StatusCode::kInvalidArgument, "NOT_A_FILE",
                   absl::StrCat(ToAbsl(path), " is not a regular file"),
                   "Name a regular file; pack a folder or a device's content first.");
}

absl::Status SourceChangedError(std::string_view path) {
  return MakeError(absl::StatusCode::kAborted, "SOURCE_CHANGED",
                   absl::StrCat(ToAbsl(path), " was written to while it was delivered"),
                   "Write the done file only after the result is complete and closed.");
}

absl::Status SourceUnreadableError(const absl::Status& cause) {
  return MakeError(absl::StatusCode::kAborted, "SOURCE_UNREADABLE", ToStd(cause.message()),
                   NextStepOf(cause));
}

absl::Status StreamFailedError(int64_t size) {
  return MakeError(absl::StatusCode::kAborted, "STREAM_FAILED",
                   absl::StrCat("the stream failed after ", size, " bytes"),
                   "Look at what produces it.");
}

absl::Status TooLargeError(std::string_view path, int64_t size, int64_t limit) {
  return MakeError(absl::StatusCode::kOutOfRange, "RESULT_TOO_LARGE",
                   absl::StrCat(ToAbsl(path), " has ", size, " bytes, the limit is ", limit),
                   "Make the result smaller, or raise max_result_bytes in the configuration.");
}

absl::Status OutsideError(std::string_view path, std::string_view folder) {
  return MakeError(
      absl::StatusCode::kPermissionDenied, "DONE_FILE_OUTSIDE",
      absl::StrCat("the done file names ", ToAbsl(path), ", which is outside ", ToAbsl(folder)),
      "Write the result below the results folder.");
}

absl::Status DoneFileError(std::string_view path, std::string_view fault) {
  return MakeError(absl::StatusCode::kInvalidArgument, "DONE_FILE_INVALID",
                   absl::StrCat("done file ", ToAbsl(path), ": ", ToAbsl(fault)),
                   "Write the path of the result into the done file, and nothing else.");
}

absl::Status ArchiveError(std::string_view path, std::string_view fault) {
  return MakeError(absl::StatusCode::kInternal, "ARCHIVE_FAILED",
                   absl::StrCat("packing ", ToAbsl(path), ": ", ToAbsl(fault)),
                   "Check that all files of the folder can be read and that its disk has space.");
}

absl::Status AlreadyRunningError(std::string_view plugin, std::string_view node,
                                 std::string_view lock) {
  return MakeError(absl::StatusCode::kAborted, "ALREADY_RUNNING",
                   absl::StrCat("another process delivers the result of plugin ", ToAbsl(plugin),
                                " on node ", ToAbsl(node), " (it holds ", ToAbsl(lock), ")"),
                   "Let it finish, or end it; then start again.");
}

absl::Status StreamBrokenError(std::string_view fault) {
  return MakeError(absl::StatusCode::kUnavailable, "STREAM_BROKEN",
                   absl::StrCat("the upload stream broke: ", ToAbsl(fault)), "");
}

absl::Status StalledError(int64_t offset) {
  return MakeError(absl::StatusCode::kUnavailable, "NO_PROGRESS",
                   absl::StrCat("the service took nothing more after byte ", offset), "");
}

absl::Status ConnectionError(std::string_view url, std::string_view fault) {
  return MakeError(absl::StatusCode::kUnavailable, "CONNECTION_FAILED",
                   absl::StrCat(ToAbsl(url), ": ", ToAbsl(fault)),
                   "Check the address, and that certificate and authority belong to this run.");
}

absl::Status HeartbeatsEndedError() {
  return MakeError(absl::StatusCode::kUnavailable, "HEARTBEATS_LOST",
                   "the status service ended the stream of heartbeats", "");
}

absl::Status HeartbeatsUnansweredError() {
  return MakeError(absl::StatusCode::kUnavailable, "HEARTBEATS_LOST",
                   "the status service does not answer heartbeats",
                   "Check that muster-status runs and that status_targets leads to it.");
}

absl::Status SpooledError(std::string_view relay, absl::Time until) {
  return MakeError(
      absl::StatusCode::kUnavailable, "RESULT_SPOOLED",
      absl::StrCat("relay ", ToAbsl(relay),
                   " has no way to the centre now and holds the result until ",
                   absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", until, absl::UTCTimeZone())),
      "Nothing: it is committed as soon as the relay can deliver it. Keep the file until then.");
}

absl::Status InterruptedError() {
  return MakeError(absl::StatusCode::kCancelled, "INTERRUPTED",
                   "asked to stop before the result was committed",
                   "Start again with the same configuration: it goes on where it stopped.");
}

absl::Status DeadlineError(const absl::Status& last) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "NOT_COMMITTED_IN_TIME",
                   absl::StrCat("the result was not committed in time; the last try ended with: ",
                                last.ok() ? "no try was made" : last.message()),
                   NextStepOf(last));
}

}  // namespace muster::client
