// How a machine becomes a node: it asks with a join token, and keeps what it gets.
#ifndef MUSTER_SERVICES_AGENT_JOINING_JOIN_FLEET_H_
#define MUSTER_SERVICES_AGENT_JOINING_JOIN_FLEET_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/common/identity/join_token.h"

namespace muster {

struct NodeJoined {
  std::string node;
  absl::Time certificate_ends;
};

// Joins as `node` (empty: as the token says) and leaves in `folder`, which is made (0700):
//
//   node.json       the fleet, the node's name, and where its services are
//   tls/key.pem     the node's key, made here and never sent (0600)
//   tls/cert.pem    its certificate, then the intermediate
//   tls/ca.pem      the fleet's root
//
// The key is there before the fleet is asked: a join whose answer was lost is repeated with the
// same key, and gives the same certificate. FAILED_PRECONDITION (ALREADY_JOINED) if the folder
// holds a certificate; UNAUTHENTICATED (JOIN_ANSWER_UNUSABLE) if what came does not belong to the
// key or the fleet of the token; the errors of JoinService; UNAVAILABLE if no address answers
// within 20 s.
absl::StatusOr<NodeJoined> JoinFleet(const JoinToken& token, const std::string& node,
                                     const std::string& folder);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOINING_JOIN_FLEET_H_
