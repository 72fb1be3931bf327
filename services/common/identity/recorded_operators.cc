#include "services/common/identity/recorded_operators.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/errors/rpc.h"
#include "services/common/identity/caller_uri.h"

namespace muster {

RecordedOperators::RecordedOperators(std::string_view fleet, const Clock& clock)
    : prefix_(absl::StrCat("spiffe://", ToAbsl(fleet), "/user/")), clock_(clock) {}

void RecordedOperators::Replace(Expiries expires) {
  const MutexLock lock(mutex_);
  expires_ = std::move(expires);
  known_ = true;
}

void RecordedOperators::Add(std::string_view uri, absl::Time expires) {
  if (!uri.starts_with(prefix_)) return;
  const MutexLock lock(mutex_);
  absl::Time& latest = expires_.try_emplace(ToAbsl(uri), absl::InfinitePast()).first->second;
  latest = std::max(latest, expires);
}

absl::Status RecordedOperators::Check(const Caller& caller) const {
  if (!caller.via || !std::holds_alternative<UserIdentity>(caller.identity.name)) {
    return absl::OkStatus();
  }
  const std::string uri = UriOf(caller);
  const MutexLock lock(mutex_);
  if (!known_) return absl::OkStatus();
  const auto recorded = expires_.find(uri);
  if (recorded != expires_.end() && clock_.Now() < recorded->second) return absl::OkStatus();
  return errors::OperatorNotRecorded(uri, ToUri(*caller.via).value_or(""));
}

}  // namespace muster
