// The revocations in the aggregator's changes.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_REVOCATION_FOLLOWER_H_
#define MUSTER_SERVICES_COMMON_SERVICE_REVOCATION_FOLLOWER_H_

#include <functional>
#include <set>
#include <string>

#include "muster/v1/changes.pb.h"

namespace muster {

// Used by one thread.
class RevocationFollower {
 public:
  // `replace` gets all revoked subjects when a snapshot is complete, so those from before stay
  // revoked while it is read; `add` gets each later one.
  RevocationFollower(std::function<void(std::set<std::string>)> replace,
                     std::function<void(const std::string&)> add);

  // Returns whether it called `replace` or `add`.
  bool HandleChange(const v1::FollowChangesResponse& change);

 private:
  const std::function<void(std::set<std::string>)> replace_;
  const std::function<void(const std::string&)> add_;
  std::set<std::string> snapshot_;
  bool in_snapshot_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_REVOCATION_FOLLOWER_H_
