#include "services/relay/files/share_signer.h"

#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/identity/share_signature.h"

namespace muster {

absl::Status VerifySigner(const v1::SharedFile& file, const ShareParts& parts) {
  RETURN_IF_ERROR(VerifySharedFile(file, parts.fleet, parts.trust.Roots(), parts.clock.Now()));
  ASSIGN_OR_RETURN(const auto chain, ParseChain(file.certificate_chain_pem()));
  // The revocation of a node lists its certificates: a machine that replaced it keeps the name.
  Caller signer;
  signer.identity = {parts.fleet, NodeIdentity{file.key().source()}};
  signer.issuer = chain.front().IssuerKeyId();
  signer.serial = chain.front().Serial();
  if (parts.trust.IsRevoked(signer)) return errors::IdentityRevoked(file.key().source());
  return absl::OkStatus();
}

}  // namespace muster
