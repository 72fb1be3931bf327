#include "services/relay/files/share_errors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/errors/shares.h"

namespace muster::errors {
namespace {

std::string NameOf(const v1::ShareKey& key) {
  return absl::StrCat("\"", key.id(), "\" from ", key.source(), " for ", key.target());
}

}  // namespace

absl::Status ShareNotFound(const v1::ShareKey& key) { return ShareNotFound(NameOf(key)); }

absl::Status ShareReplaced(const v1::ShareKey& key) { return ShareReplaced(NameOf(key)); }

absl::Status ShareSuperseded(const v1::ShareKey& key) { return ShareSuperseded(NameOf(key)); }

absl::Status ShareExpired(const v1::ShareKey& key) { return ShareExpired(NameOf(key)); }

absl::Status ShareNotYours(std::string_view caller, const v1::ShareKey& key) {
  return ShareNotYours(caller, NameOf(key));
}

}  // namespace muster::errors
