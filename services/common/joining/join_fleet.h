// Joins a machine as a node or a relay with a join token, and stores its identity.
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

// Joins as `node` (empty: the name in the token) and writes to `folder`, which is created (0700).
//
//   node.json       The fleet, the node's name, and the addresses of services (member_file.h).
//   command-ca.pem  The command authority of the fleet.
//   tls/key.pem     The node's key, made here and never sent (0600).
//   tls/cert.pem    Its certificate, then the intermediate.
//   tls/ca.pem      The fleet's root.
//
// The root and the command authority are those in the token, not those in the response. With a
// token of a version without commands, command-ca.pem is omitted.
//
// The key is stored before the request: a join whose answer was lost is repeated with the same
// key, and returns the same certificate. FAILED_PRECONDITION (ALREADY_JOINED) if the folder
// holds a certificate; PERMISSION_DENIED (TOKEN_OF_OTHER_KIND) for a relay's token; UNAUTHENTICATED
// (JOIN_ANSWER_UNUSABLE) if no answer belongs to the key and the fleet of the token; the errors of
// JoinService; UNAVAILABLE if no address answers within 20 s.
//
// `link` is stored with the addresses, and decides how this machine connects (member_file.h):
// INVALID_ARGUMENT (INVALID_LINK) for another value.
absl::StatusOr<MemberJoined> JoinFleet(const JoinToken& token, const std::string& node,
                                       const std::string& folder, const std::string& link = "");

// The addresses of a relay, "host:port" each; at most 16.
struct RelayAddresses {
  std::vector<std::string> relay_targets;  // for its children; at least one
  std::vector<std::string> join_targets;   // for machines that join through it
};

// Does the same for a relay, which the token names, with relay.json in place of node.json.
absl::StatusOr<MemberJoined> JoinAsRelay(const JoinToken& token, const RelayAddresses& addresses,
                                         const std::string& folder, const std::string& link = "");

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOINING_JOIN_FLEET_H_
