// How a machine becomes a node or a relay: it asks with a join token, and keeps what it gets.
#ifndef MUSTER_SERVICES_COMMON_JOINING_JOIN_FLEET_H_
#define MUSTER_SERVICES_COMMON_JOINING_JOIN_FLEET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/identity/join_token.h"

namespace muster {

struct MemberJoined {
  std::string name;
  absl::Time certificate_ends;
};

// Joins as `node` (empty: as the token says) and leaves in `folder`, which is made (0700):
//
//   node.json       the fleet, the node's name, and where its services are (member_file.h)
//   command-ca.pem  the fleet's command authority, which signs signing certificates
//   tls/key.pem     the node's key, made here and never sent (0600)
//   tls/cert.pem    its certificate, then the intermediate
//   tls/ca.pem      the fleet's root
//
// Both authorities are those of the token: what comes over the network is not trusted with them.
// With a token from before there were commands, command-ca.pem is left out.
//
// The key is stored before the request: a join whose answer was lost is repeated with the same
// key, and returns the same certificate. FAILED_PRECONDITION (ALREADY_JOINED) if the folder
// holds a certificate; PERMISSION_DENIED (TOKEN_OF_OTHER_KIND) for a relay's token; UNAUTHENTICATED
// (JOIN_ANSWER_UNUSABLE) if what came does not belong to the key or the fleet of the token; the
// errors of JoinService; UNAVAILABLE if no address answers within 20 s.
absl::StatusOr<MemberJoined> JoinFleet(const JoinToken& token, const std::string& node,
                                       const std::string& folder);

// Where a relay is reached, "host:port" each; at most 16.
struct RelayAddresses {
  std::vector<std::string> relay_targets;  // for attached nodes and relays; at least one
  std::vector<std::string> join_targets;   // for machines that join through it
};

// The same for a relay, whose name the token has: relay.json in place of node.json.
absl::StatusOr<MemberJoined> JoinAsRelay(const JoinToken& token, const RelayAddresses& addresses,
                                         const std::string& folder);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOINING_JOIN_FLEET_H_
