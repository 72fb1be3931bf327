// Generated from client.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/client.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status ConfigInvalid(std::string_view where, std::string_view field, std::string_view fault) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CONFIG",
                   absl::StrCat(ToAbsl(where), ": ", ToAbsl(field), field.empty() ? "" : ": ", ToAbsl(fault)),
                   "Correct the configuration; docs/agent.md describes each field.");
}

absl::Status CertificateEnded(absl::Time end) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CONFIG",
                   absl::StrCat("client_cert: the certificate expired at ", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", end, absl::UTCTimeZone())),
                   "Ask an operator for a new one: muster credentials export.");
}

absl::Status NotARegularFile(std::string_view path) {
  return MakeError(absl::StatusCode::kInvalidArgument, "NOT_A_FILE",
                   absl::StrCat(ToAbsl(path), " is not a regular file"),
                   "Name a regular file; pack a folder or the content of a device first.");
}

absl::Status SourceChanged(std::string_view path) {
  return MakeError(absl::StatusCode::kAborted, "SOURCE_CHANGED",
                   absl::StrCat(ToAbsl(path), " was changed while it was delivered"),
                   "Write the done file only after the result is complete and closed.");
}

absl::Status SourceUnreadable(std::string_view why, std::string_view next_step) {
  return MakeError(absl::StatusCode::kAborted, "SOURCE_UNREADABLE",
                   why,
                   next_step);
}

absl::Status StreamFailed(int64_t size) {
  return MakeError(absl::StatusCode::kAborted, "STREAM_FAILED",
                   absl::StrCat("the source failed after ", size, " bytes"),
                   "Check the program that writes the source.");
}

absl::Status ResultTooLarge(std::string_view path, int64_t size, int64_t limit) {
  return MakeError(absl::StatusCode::kOutOfRange, "RESULT_TOO_LARGE",
                   absl::StrCat(ToAbsl(path), " has ", size, " bytes, more than ", limit),
                   "Make the result smaller, or raise max_result_bytes in the configuration.");
}

absl::Status DoneFileOutside(std::string_view path, std::string_view folder) {
  return MakeError(absl::StatusCode::kPermissionDenied, "DONE_FILE_OUTSIDE",
                   absl::StrCat("the done file names ", ToAbsl(path), ", which is outside ", ToAbsl(folder)),
                   "Write the result into the results folder.");
}

absl::Status DoneFileInvalid(std::string_view path, std::string_view fault) {
  return MakeError(absl::StatusCode::kInvalidArgument, "DONE_FILE_INVALID",
                   absl::StrCat("invalid done file ", ToAbsl(path), ": ", ToAbsl(fault)),
                   "Write the path of the result into the done file, and nothing else.");
}

absl::Status ArchiveFailed(std::string_view path, std::string_view fault) {
  return MakeError(absl::StatusCode::kInternal, "ARCHIVE_FAILED",
                   absl::StrCat("cannot pack ", ToAbsl(path), ": ", ToAbsl(fault)),
                   "Check that all files of the folder can be read and that its disk has space.");
}

absl::Status DeliveryAlreadyRunning(std::string_view plugin, std::string_view node, std::string_view lock) {
  return MakeError(absl::StatusCode::kAborted, "ALREADY_RUNNING",
                   absl::StrCat("another process delivers the result of plugin ", ToAbsl(plugin), " on node ", ToAbsl(node), " (it has locked ", ToAbsl(lock), ")"),
                   "Let it finish, or stop it; then start again.");
}

absl::Status StreamBroken(std::string_view fault) {
  return MakeError(absl::StatusCode::kUnavailable, "STREAM_BROKEN",
                   absl::StrCat("the upload stream broke: ", ToAbsl(fault)),
                   "The delivery is retried. If this lasts, look at the network and the log of the service.");
}

absl::Status NoUploadProgress(int64_t offset) {
  return MakeError(absl::StatusCode::kUnavailable, "NO_PROGRESS",
                   absl::StrCat("the service acknowledged nothing after byte ", offset),
                   "The delivery is retried. If this lasts, look at the load and the disk of the service.");
}

absl::Status ConnectionFailed(std::string_view url, std::string_view fault) {
  return MakeError(absl::StatusCode::kUnavailable, "CONNECTION_FAILED",
                   absl::StrCat(ToAbsl(url), ": ", ToAbsl(fault)),
                   "Check the address, and that the certificate and the CA belong to this run.");
}

absl::Status HeartbeatsEnded() {
  return MakeError(absl::StatusCode::kUnavailable, "HEARTBEATS_LOST",
                   "the status service ended the stream of heartbeats",
                   "The sender connects again. If this lasts, look at the log of muster-status.");
}

absl::Status HeartbeatsUnanswered() {
  return MakeError(absl::StatusCode::kUnavailable, "HEARTBEATS_LOST",
                   "the status service does not answer heartbeats",
                   "Check that muster-status runs and that status_targets names it.");
}

absl::Status ResultSpooled(std::string_view relay, absl::Time until) {
  return MakeError(absl::StatusCode::kUnavailable, "RESULT_SPOOLED",
                   absl::StrCat("relay ", ToAbsl(relay), " cannot reach its parent and keeps the result until ", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", until, absl::UTCTimeZone())),
                   "Keep the file until the relay has delivered the result; the delivery needs no action.");
}

absl::Status Interrupted() {
  return MakeError(absl::StatusCode::kCancelled, "INTERRUPTED",
                   "the delivery was stopped before the result was committed",
                   "Start again with the same configuration: the delivery is resumed.");
}

absl::Status NotCommittedInTime(std::string_view last, std::string_view next_step) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "NOT_COMMITTED_IN_TIME",
                   absl::StrCat("the result was not committed in time; the last attempt failed: ", ToAbsl(last)),
                   next_step);
}

absl::Status ErrorConflict(std::string_view plugin, std::string_view node) {
  return MakeError(absl::StatusCode::kAlreadyExists, "RESULT_CONFLICT",
                   absl::StrCat("another error of plugin \"", ToAbsl(plugin), "\" from node \"", ToAbsl(node), "\" is committed; this one was not stored"),
                   "Deliver a genuine result. It replaces the committed error until the run is sealed.");
}

absl::Status ConflictAtListener(std::string_view answer) {
  return MakeError(absl::StatusCode::kAlreadyExists, "RESULT_CONFLICT",
                   answer,
                   "Keep the committed result; a different one is not stored.");
}

absl::Status SealedAtListener(std::string_view answer) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RUN_SEALED",
                   answer,
                   "Deliver to a newer run.");
}

absl::Status NotYoursAtListener(std::string_view answer) {
  return MakeError(absl::StatusCode::kPermissionDenied, "NOT_YOURS",
                   answer,
                   "Check plugin and node against the plan of the run.");
}

absl::Status TooLargeForListener(std::string_view answer) {
  return MakeError(absl::StatusCode::kInvalidArgument, "RESULT_TOO_LARGE",
                   answer,
                   "Make the result smaller, or raise limits.result_bytes in the configurations of the gateway and the aggregator.");
}

absl::Status RefusedByListener(std::string_view answer) {
  return MakeError(absl::StatusCode::kInvalidArgument, "HTTP_REFUSED",
                   answer,
                   "Check that aggregator_url is the listener of the run.");
}

}  // namespace muster::errors
