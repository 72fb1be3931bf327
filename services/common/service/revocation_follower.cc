#include "services/common/service/revocation_follower.h"

#include <utility>

namespace muster {

RevocationFollower::RevocationFollower(std::function<void(std::set<std::string>)> replace,
                                       std::function<void(const std::string&)> add)
    : replace_(std::move(replace)), add_(std::move(add)) {}

bool RevocationFollower::HandleChange(const v1::FollowChangesResponse& change) {
  switch (change.event_case()) {
    case v1::FollowChangesResponse::kSnapshotBegin:
      in_snapshot_ = true;
      snapshot_.clear();
      return false;
    case v1::FollowChangesResponse::kSnapshotEnd:
      in_snapshot_ = false;
      replace_(std::exchange(snapshot_, {}));
      return true;
    case v1::FollowChangesResponse::kRevoked:
      if (in_snapshot_) {
        snapshot_.insert(change.revoked().subject());
        return false;
      }
      add_(change.revoked().subject());
      return true;
    default:
      return false;
  }
}

}  // namespace muster
