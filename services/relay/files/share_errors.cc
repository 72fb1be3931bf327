#include "services/relay/files/share_errors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {
namespace {

using Code = absl::StatusCode;

std::string Named(const v1::ShareKey& key) {
  return absl::StrCat("\"", key.id(), "\" from ", key.source(), " for ", key.target());
}

}  // namespace

absl::Status ShareNotFound(const v1::ShareKey& key) {
  return MakeError(Code::kNotFound, "SHARE_NOT_FOUND",
                   absl::StrCat("there is no shared file ", Named(key)),
                   "List what is there: muster shared list.");
}

absl::Status ShareReplaced(const v1::ShareKey& key) {
  return MakeError(Code::kFailedPrecondition, "SHARE_REPLACED",
                   absl::StrCat("the shared file ", Named(key), " has other bytes now"),
                   "Get it again from its beginning.");
}

absl::Status ShareSuperseded(const v1::ShareKey& key) {
  return MakeError(Code::kFailedPrecondition, "SHARE_SUPERSEDED",
                   absl::StrCat("the shared file ", Named(key), " was signed before the one there"),
                   "Nothing, if the later one is meant; else check the source's clock and share it "
                   "again.");
}

absl::Status ShareExpired(const v1::ShareKey& key) {
  return MakeError(Code::kFailedPrecondition, "SHARE_EXPIRED",
                   absl::StrCat("the shared file ", Named(key), " has expired"),
                   "Share it again, with a longer --ttl.");
}

absl::Status ShareQuota(std::string_view limit) {
  return WithRetryAfter(
      MakeError(Code::kResourceExhausted, "SHARE_QUOTA",
                absl::StrCat("the relay has no room for the shared file: ", ToAbsl(limit)),
                "Remove what is not needed (muster shared remove), or raise shares.quota and "
                "shares.max_files in the relay's file."),
      absl::Minutes(1));
}

absl::Status ShareTooLarge(int64_t size, int64_t limit) {
  return MakeError(Code::kInvalidArgument, "SHARE_TOO_LARGE",
                   absl::StrCat("the shared file has ", size, " bytes; a relay takes ", limit),
                   "Share it in parts, or raise shares.max_size in the files of all relays on its "
                   "way.");
}

absl::Status ShareNotYours(std::string_view caller, const v1::ShareKey& key) {
  return MakeError(Code::kPermissionDenied, "NOT_YOURS",
                   absl::StrCat("the shared file ", Named(key), " is not for ", ToAbsl(caller)),
                   "A file is its source's, its target's and the relays' on its way.");
}

absl::Status SignedTooLongAgo() {
  return MakeError(Code::kUnauthenticated, "INVALID_SIGNATURE",
                   "the signature over the shared file was made more than an hour ago",
                   "Sign it anew; check the clocks of node and relay.");
}

absl::Status TargetUnknown(std::string_view target) {
  return MakeError(
      Code::kNotFound, "TARGET_UNKNOWN",
      absl::StrCat("no node \"", ToAbsl(target), "\" is attached, or was within the last week"),
      "Check the name (muster nodes); the target has to be attached once: muster "
      "agent attach.");
}

absl::Status TargetNeverJoined(std::string_view target) {
  return MakeError(Code::kNotFound, "TARGET_UNKNOWN",
                   absl::StrCat("no node \"", ToAbsl(target), "\" has joined the fleet"),
                   "Check the name (muster nodes); one that was revoked counts no more.");
}

absl::Status RelayNotInTree(std::string_view relay) {
  return MakeError(Code::kNotFound, "RELAY_NOT_FOUND",
                   absl::StrCat("no relay \"", ToAbsl(relay), "\" is below this one"),
                   "Check the name: muster nodes lists relays, too.");
}

absl::Status RelayNotReached(std::string_view relay, std::string_view why) {
  return MakeError(Code::kUnavailable, "RELAY_NOT_REACHED",
                   absl::StrCat("relay ", ToAbsl(relay), " cannot be asked now: ", ToAbsl(why)),
                   "Ask again; muster nodes shows whether it is attached.");
}

absl::Status RelayFailed(std::string_view relay, std::string_view fault) {
  return MakeError(Code::kInternal, "RELAY_FAILED",
                   absl::StrCat("relay ", ToAbsl(relay), " could not do it: ", ToAbsl(fault)),
                   "Look into that relay's log.");
}

absl::Status RemovalNotRecorded(std::string_view why) {
  return MakeError(Code::kUnavailable, "NOT_RECORDED",
                   absl::StrCat("the audit log does not have the removal, so nothing was removed: ",
                                ToAbsl(why)),
                   "Remove it again when the aggregator is there.");
}

}  // namespace muster::errors
