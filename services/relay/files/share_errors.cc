#include "services/relay/files/share_errors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/names.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/shares.h"

namespace muster {

bool IsRefusal(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  if (reason.empty() || reason == "UPLOAD_NOT_FOUND") return false;
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return true;
    case absl::StatusCode::kUnauthenticated:
      return reason == "INVALID_SIGNATURE" || reason == "IDENTITY_REVOKED";
    default:
      return false;
  }
}

absl::Status CheckReported(const v1::Share& share) {
  const v1::ShareState state = share.state();
  if (!v1::ShareState_IsValid(state) || state == v1::SHARE_STATE_UNSPECIFIED) {
    return errors::InvalidShare(absl::StrCat("its state ", static_cast<int>(state), " is unknown"));
  }
  return share.relay().empty() ? absl::OkStatus() : ValidateName("relay", share.relay());
}

}  // namespace muster

namespace muster::errors {
namespace {

std::string NameOf(const v1::ShareKey& key) {
  return absl::StrCat("\"", key.id(), "\" from ", key.source(), " for ", key.target());
}

}  // namespace

absl::Status ShareNotFound(const v1::ShareKey& key) { return ShareNotFound(NameOf(key)); }

absl::Status ShareReplaced(const v1::ShareKey& key) { return ShareReplaced(NameOf(key)); }

absl::Status ShareSuperseded(const v1::ShareKey& key) { return ShareSuperseded(NameOf(key)); }

absl::Status ShareArriving(const v1::ShareKey& key) { return ShareArriving(NameOf(key)); }

absl::Status ShareExpired(const v1::ShareKey& key) { return ShareExpired(NameOf(key)); }

absl::Status ShareNotYours(std::string_view caller, const v1::ShareKey& key) {
  return ShareNotYours(caller, NameOf(key));
}

}  // namespace muster::errors
