// How a machine without an identity, or with one that has ended, becomes a node or a relay.
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

// One that was away for longer has to join again: its certificate is not remembered any more.
inline constexpr absl::Duration kReturnWithin = absl::Microseconds(kIssuedKept);

// What a machine asks for with a token; as in JoinRequest.
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

// Thread-safe. Its methods may wait for the disk; their errors are those of JoinService.
class Joining {
 public:
  Joining(StateStore& store, Authorities& authorities, const Clock& clock)
      : store_(store), authorities_(authorities), clock_(clock) {}

  absl::StatusOr<JoinedMember> Join(const JoinParameters& wish);

  absl::StatusOr<JoinedMember> Rejoin(const std::string& chain_pem, const std::string& csr_pem,
                                      const std::string& proof);

 private:
  // The token of a wish that is proven to be by its key, for a machine of its kind.
  absl::StatusOr<JoinTokenRecord> ProvenToken(const JoinParameters& wish);

  // The member whose certificate this was, if it may come back.
  absl::StatusOr<NodeRecord> Rejoining(const std::string& chain_pem, const std::string& csr_pem,
                                       const std::string& proof);

  StateStore& store_;
  Authorities& authorities_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_NODES_JOINING_H_
