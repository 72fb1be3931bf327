#include "services/common/service/operator_follower.h"

#include <utility>

#include "services/common/rpc/proto_time.h"

namespace muster {

void OperatorFollower::HandleChange(const v1::FollowChangesResponse& change) {
  switch (change.event_case()) {
    case v1::FollowChangesResponse::kSnapshotBegin:
      in_snapshot_ = true;
      snapshot_.clear();
      break;
    case v1::FollowChangesResponse::kSnapshotEnd:
      in_snapshot_ = false;
      operators_.Replace(std::exchange(snapshot_, {}));
      break;
    case v1::FollowChangesResponse::kOperatorRecorded: {
      const auto& recorded = change.operator_recorded();
      const absl::Time expires = FromProto(recorded.expires());
      if (in_snapshot_) {
        snapshot_[recorded.uri()] = expires;
      } else {
        operators_.Add(recorded.uri(), expires);
      }
      break;
    }
    default:
      break;
  }
}

}  // namespace muster
