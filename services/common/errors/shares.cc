// Generated from shares.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/shares.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status EndlessShareList(std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "ENDLESS_SHARE_LIST",
                   absl::StrCat("the list of shared files has no end: ", ToAbsl(why)),
                   "Check the relay that answers; revoke it if it is not yours.");
}

absl::Status ShareNotFound(std::string_view file) {
  return MakeError(absl::StatusCode::kNotFound, "SHARE_NOT_FOUND",
                   absl::StrCat("shared file ", ToAbsl(file), " not found"),
                   "List the shared files: muster shared list.");
}

absl::Status ShareNotReady() {
  return MakeError(absl::StatusCode::kNotFound, "SHARE_NOT_FOUND",
                   "the shared file has expired, was removed, or has not been delivered",
                   "Show its state: muster shared show.");
}

absl::Status ShareReplaced(std::string_view file) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SHARE_REPLACED",
                   absl::StrCat("the content of shared file ", ToAbsl(file), " was replaced"),
                   "Get it again from its beginning.");
}

absl::Status ShareSuperseded(std::string_view file) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SHARE_SUPERSEDED",
                   absl::StrCat("shared file ", ToAbsl(file), " was signed before the stored one"),
                   "Ignore this error if the stored file is the newer one; otherwise check the clock of the source and share the file again.");
}

absl::Status ShareArriving(std::string_view file) {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "SHARE_ARRIVING",
                   absl::StrCat("another sender is sending shared file ", ToAbsl(file)),
                   "Try again later."),
                        absl::Seconds(10));
}

absl::Status ShareExpired(std::string_view file) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SHARE_EXPIRED",
                   absl::StrCat("shared file ", ToAbsl(file), " has expired"),
                   "Share it again, with a longer --ttl.");
}

absl::Status ShareQuota(std::string_view limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "SHARE_QUOTA",
                   absl::StrCat("the relay has no space for the shared file: ", ToAbsl(limit)),
                   "Remove shared files that are not needed (muster shared remove), or raise shares.quota and shares.max_files in the configuration of the relay."),
                        absl::Seconds(60));
}

absl::Status ShareTooLarge(int64_t size, int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, "SHARE_TOO_LARGE",
                   absl::StrCat("the shared file has ", size, " bytes, more than the ", limit, " that the relay accepts"),
                   "Split it, or raise shares.max_size in the configuration of all relays on its route.");
}

absl::Status ShareNotYours(std::string_view caller, std::string_view file) {
  return MakeError(absl::StatusCode::kPermissionDenied, "NOT_YOURS",
                   absl::StrCat("shared file ", ToAbsl(file), " is not for ", ToAbsl(caller)),
                   "Use the identity of its source, of its target, or of a relay on its route.");
}

absl::Status SignedTooLongAgo() {
  return MakeError(absl::StatusCode::kUnauthenticated, "INVALID_SIGNATURE",
                   "the shared file was signed more than an hour ago",
                   "Sign it again, and check the clocks of node and relay.");
}

absl::Status TargetUnknown(std::string_view target) {
  return MakeError(absl::StatusCode::kNotFound, "TARGET_UNKNOWN",
                   absl::StrCat("node \"", ToAbsl(target), "\" was not attached within the last week"),
                   "Check the name (muster nodes); attach the target once: muster agent attach.");
}

absl::Status TargetNeverJoined(std::string_view target) {
  return MakeError(absl::StatusCode::kNotFound, "TARGET_UNKNOWN",
                   absl::StrCat("node \"", ToAbsl(target), "\" has not joined the fleet, or was removed"),
                   "Check the name: muster nodes.");
}

absl::Status TargetRevoked(std::string_view target) {
  return MakeError(absl::StatusCode::kNotFound, "TARGET_UNKNOWN",
                   absl::StrCat("node \"", ToAbsl(target), "\" was revoked"),
                   "Ask an operator to remove the node (muster node remove) and to create a new token.");
}

absl::Status TargetIsRelay(std::string_view target) {
  return MakeError(absl::StatusCode::kNotFound, "TARGET_UNKNOWN",
                   absl::StrCat("\"", ToAbsl(target), "\" is a relay, not a node"),
                   "Name a node: muster nodes.");
}

absl::Status RemovalNotRecorded(std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "NOT_RECORDED",
                   absl::StrCat("the removal was not recorded in the audit log, so nothing was removed: ", ToAbsl(why)),
                   "Remove it again when the aggregator is reachable.");
}

absl::Status ShareRefusedAt(std::string_view file, std::string_view relay, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SHARE_REFUSED",
                   absl::StrCat(ToAbsl(file), " was refused at relay ", ToAbsl(relay), why.empty() ? "" : ": ", ToAbsl(why)),
                   "Correct the cause, and share the file again.");
}

absl::Status ShareExpiredAt(std::string_view file, std::string_view relay, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SHARE_EXPIRED",
                   absl::StrCat(ToAbsl(file), " expired at relay ", ToAbsl(relay), why.empty() ? "" : ": ", ToAbsl(why)),
                   "Share the file again, with a longer --ttl.");
}

absl::Status ShareRemovedAt(std::string_view file, std::string_view relay, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SHARE_REMOVED",
                   absl::StrCat(ToAbsl(file), " was removed at relay ", ToAbsl(relay), why.empty() ? "" : ": ", ToAbsl(why)),
                   "Share the file again if it is still needed.");
}

}  // namespace muster::errors
