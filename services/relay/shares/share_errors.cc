#include "services/relay/shares/share_errors.h"

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

}  // namespace muster::errors
