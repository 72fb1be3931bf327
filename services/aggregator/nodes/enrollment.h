// The register of nodes and the join tokens, as operators administer them.
#ifndef MUSTER_SERVICES_AGGREGATOR_NODES_ENROLLMENT_H_
#define MUSTER_SERVICES_AGGREGATOR_NODES_ENROLLMENT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/aggregator/nodes/parents.h"
#include "services/common/base/clock.h"
#include "services/common/store/state_store.h"

namespace muster {

inline constexpr size_t kMaxLabels = 64;
inline constexpr int kMaxTokenUses = 10'000;  // of one token
inline constexpr absl::Duration kDefaultTokenLife = absl::Minutes(15);

// Checks the name of a node or of a relay that joins. Fails with INVALID_TOKEN for a reserved name,
// otherwise as ValidateName.
absl::Status CheckNodeName(const std::string& name);

// Checks the labels of a node. Fails with INVALID_LABEL.
absl::Status CheckLabels(const Labels& labels);

// Thread-safe. Methods may wait for the disk and fail as EnrollmentService does.
class Enrollment {
 public:
  Enrollment(StateStore& store, const Clock& clock) : store_(store), clock_(clock) {}

  // `wanted`: id, public key, node or count, labels, kind, parents, and caller; the other fields
  // are set here.
  absl::StatusOr<JoinTokenRecord> CreateToken(JoinTokenRecord wanted, absl::Duration ttl);
  // Returns the addresses of a token's parents, which precede the root relay.
  absl::StatusOr<ParentTargets> TargetsOfParents(const JoinTokenRecord& token) {
    return FindParentTargets(store_, token.parents);
  }
  absl::StatusOr<std::vector<JoinTokenRecord>> Tokens();
  absl::StatusOr<JoinTokenRecord> RevokeToken(const std::string& id, const Actor& actor);

  absl::StatusOr<Page<NodeRecord>> Nodes(const Labels& labels, std::string_view page_token,
                                         int limit);
  absl::StatusOr<NodeRecord> Node(const std::string& name);
  absl::StatusOr<NodeRecord> Label(const std::string& name, Labels set,
                                   std::vector<std::string> remove, const Actor& actor);
  absl::StatusOr<NodeRecord> Revoke(const std::string& name, const std::string& reason,
                                    const Actor& actor);
  absl::Status Remove(const std::string& name, const Actor& actor);

 private:
  int64_t Now() const { return absl::ToUnixMicros(clock_.Now()); }

  StateStore& store_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_NODES_ENROLLMENT_H_
