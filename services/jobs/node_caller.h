// Checks of calls whose requests a node signs.
#ifndef MUSTER_SERVICES_JOBS_NODE_CALLER_H_
#define MUSTER_SERVICES_JOBS_NODE_CALLER_H_

#include <string>

#include "services/common/identity/revocation.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/rpc/call.h"

namespace muster {

// Returns the URI of the relay that forwarded the call, for the log; empty: none did.
std::string RelayOf(const Call& call);

// Returns whether the caller is this node of the fleet.
bool IsCallOfNode(const Call& call, const std::string& fleet, const std::string& node);

// Returns whether the identity that signed, or its certificate, is revoked.
bool IsRevoked(const VerifiedChain& signer, const RevocationList& revocations);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_NODE_CALLER_H_
