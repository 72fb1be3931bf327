// The revocations of the aggregator's feed, as a service applies them.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_FOLLOWED_REVOCATIONS_H_
#define MUSTER_SERVICES_COMMON_SERVICE_FOLLOWED_REVOCATIONS_H_

#include "muster/v1/changes.pb.h"
#include "services/common/identity/revocation.h"
#include "services/common/rpc/call_canceller.h"
#include "services/common/service/revocation_follower.h"

namespace muster {

// Thread-safe, but for HandleChange.
class FollowedRevocations {
 public:
  // The canceller outlives it.
  explicit FollowedRevocations(CallCanceller& canceller);

  // Ends the calls of newly revoked callers. Returns whether the list was changed. Called with each
  // event of the feed, one at a time.
  bool HandleChange(const v1::FollowChangesResponse& change);

  bool IsRevoked(const Caller& caller) const { return list_.IsRevoked(caller); }
  const RevocationList& list() const { return list_; }

 private:
  CallCanceller& canceller_;
  RevocationList list_;
  RevocationFollower follower_;  // used by HandleChange
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_FOLLOWED_REVOCATIONS_H_
