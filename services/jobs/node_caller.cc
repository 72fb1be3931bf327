#include "services/jobs/node_caller.h"

#include "services/common/identity/caller_uri.h"
#include "services/common/identity/identity.h"

namespace muster {

std::string RelayOf(const Call& call) {
  if (!call.caller().via) return "";
  return ToUri(*call.caller().via).value_or("");
}

bool IsCallOfNode(const Call& call, const std::string& fleet, const std::string& node) {
  return UriOf(call.caller()) == ToUri({fleet, NodeIdentity{node}}).value_or("");
}

bool IsRevoked(const VerifiedChain& signer, const RevocationList& revocations) {
  return revocations.Contains(signer.uri) ||
         revocations.Contains(CertificateSubject(signer.issuer, signer.serial));
}

}  // namespace muster
