#include "services/aggregator/uploads/spooled_proof.h"

#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/identity/result_signature.h"

namespace muster {
namespace {

// Clocks of relay and aggregator may be apart by this.
constexpr absl::Duration kClockSlack = absl::Minutes(5);

}  // namespace

absl::Time AcceptTime(const v1::SpooledProof& proof) {
  return absl::FromUnixSeconds(proof.accept_time().seconds());
}

absl::Status SpooledProofs::Check(const v1::SpooledProof& proof, const Caller& relay,
                                  UploadRecord* upload) const {
  const v1::Signature& signature = proof.signature();
  if (signature.value().empty()) return errors::SignatureRequired(upload->key.node);
  const absl::Time accepted = AcceptTime(proof);
  const absl::Time now = clock_.Now();
  if (accepted > now + kClockSlack || accepted < now - kSpooledAtMost) return errors::ProofTooOld();
  const SignedResult result = {upload->key.run, upload->key.plugin, upload->key.node,
                               upload->attempt, proof.size(),       proof.sha256()};
  RETURN_IF_ERROR(VerifyResultSignature(signature.value(), signature.certificate_chain_pem(),
                                        result, fleet_, root_, accepted));
  // It parsed before.
  const Certificate leaf = ParseChain(signature.certificate_chain_pem())->front();
  Caller node;
  node.identity = *ParseIdentity(*leaf.Uri(), fleet_);
  node.issuer = leaf.IssuerKeyId();
  node.serial = leaf.Serial();
  if (RoleOf(node.identity) != Role::kNode) {
    return errors::InvalidSignature("only enrolled nodes deliver through relays");
  }
  if (is_revoked_(node)) {
    return errors::SignerRevoked();
  }
  upload->delivery = {};
  upload->delivery.uri = *ToUri(node.identity);
  upload->delivery.vouched_by = *ToUri(relay.identity);
  return absl::OkStatus();
}

}  // namespace muster
