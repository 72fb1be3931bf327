#include "services/common/service/followed_revocations.h"

#include <set>
#include <string>
#include <utility>

#include "services/common/errors/rpc.h"

namespace muster {

FollowedRevocations::FollowedRevocations(CallCanceller& canceller)
    : canceller_(canceller),
      follower_([this](std::set<std::string> subjects) { list_.Replace(std::move(subjects)); },
                [this](const std::string& subject) { list_.Add(subject); }) {}

bool FollowedRevocations::HandleChange(const v1::FollowChangesResponse& change) {
  if (!follower_.HandleChange(change)) return false;
  canceller_.EndIf([this](const Caller& caller) { return IsRevoked(caller); },
                   errors::CallerRevoked());
  return true;
}

}  // namespace muster
