// The recorded operators in the aggregator's changes.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_OPERATOR_FOLLOWER_H_
#define MUSTER_SERVICES_COMMON_SERVICE_OPERATOR_FOLLOWER_H_

#include "muster/v1/changes.pb.h"
#include "services/common/identity/recorded_operators.h"

namespace muster {

// Keeps the recorded operators of a service current. Used by one thread.
class OperatorFollower {
 public:
  // `operators` outlives it.
  explicit OperatorFollower(RecordedOperators& operators) : operators_(operators) {}

  // Called with each event of the feed. The operators from before a snapshot stay recorded until it
  // is complete.
  void HandleChange(const v1::FollowChangesResponse& change);

 private:
  RecordedOperators& operators_;
  RecordedOperators::Expiries snapshot_;
  bool in_snapshot_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_OPERATOR_FOLLOWER_H_
