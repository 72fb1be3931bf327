// How a machine without an identity, or with one that has ended, becomes a node.
#ifndef MUSTER_SERVICES_AGGREGATOR_NODES_JOINING_H_
#define MUSTER_SERVICES_AGGREGATOR_NODES_JOINING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/aggregator/runs/authorities.h"
#include "services/common/base/clock.h"
#include "services/common/store/state_store.h"

namespace muster {

// A node that was away for longer has to join again: its certificate is not remembered any more.
inline constexpr absl::Duration kReturnWithin = absl::Microseconds(kIssuedKept);

struct JoinedNode {
  std::string name;
  std::string certificate_chain_pem;
  absl::Time expires;
};

// Thread-safe. Its methods may wait for the disk; their errors are those of JoinService.
class Joining {
 public:
  Joining(StateStore& store, Authorities& authorities, const Clock& clock)
      : store_(store), authorities_(authorities), clock_(clock) {}

  absl::StatusOr<JoinedNode> Join(const std::string& token_id, const std::string& node,
                                  const std::string& csr_pem, const std::string& proof);

  absl::StatusOr<JoinedNode> Return(const std::string& chain_pem, const std::string& csr_pem,
                                    const std::string& proof);

 private:
  // The node whose certificate this was, if it may come back.
  absl::StatusOr<NodeIdentity> Returning(const std::string& chain_pem, const std::string& csr_pem,
                                         const std::string& proof);

  StateStore& store_;
  Authorities& authorities_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_NODES_JOINING_H_
