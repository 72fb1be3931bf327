// Joining of machines without an identity, and renewal of expired identities.
#ifndef MUSTER_SERVICES_AGGREGATOR_NODES_JOINING_H_
#define MUSTER_SERVICES_AGGREGATOR_NODES_JOINING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/aggregator/runs/authorities.h"
#include "services/common/base/clock.h"
#include "services/common/store/state_store.h"

namespace muster {

// A machine that was offline for longer must join again, because its certificate is no longer
// recorded.
inline constexpr absl::Duration kReturnWithin = absl::Microseconds(kIssuedKept);

// A join request with a token, as in JoinRequest.
struct JoinParameters {
  std::string token_id;
  std::string name;
  std::string csr_pem;
  std::string proof;
  std::vector<std::string> relay_targets;
  std::vector<std::string> join_targets;
};

struct JoinedMember {
  std::string name;
  bool relay = false;
  std::string certificate_chain_pem;
  absl::Time expires;
  std::vector<std::string> parents;
};

// Thread-safe. Methods may wait for the disk and fail as JoinService does.
class Joining {
 public:
  Joining(StateStore& store, Authorities& authorities, const Clock& clock)
      : store_(store), authorities_(authorities), clock_(clock) {}

  absl::StatusOr<JoinedMember> Join(const JoinParameters& parameters);

  absl::StatusOr<JoinedMember> Rejoin(const std::string& chain_pem, const std::string& csr_pem,
                                      const std::string& proof);

 private:
  // Returns the token whose key signed the request, if it is for a machine of this kind.
  absl::StatusOr<JoinTokenRecord> ProvenToken(const JoinParameters& parameters);

  // Returns the member of this certificate, if it may be renewed.
  absl::StatusOr<NodeRecord> Rejoining(const std::string& chain_pem, const std::string& csr_pem,
                                       const std::string& proof);

  StateStore& store_;
  Authorities& authorities_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_NODES_JOINING_H_
