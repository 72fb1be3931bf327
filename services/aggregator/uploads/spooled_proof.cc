#include "services/aggregator/uploads/spooled_proof.h"

#include <variant>

#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/result_signature.h"
#include "services/common/upload/delivery_signature.h"

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
  RETURN_IF_ERROR(ValidateSignature(signature));
  if (signature.value().empty()) return errors::SignatureRequired(upload->key.node);
  const absl::Time accepted = AcceptTime(proof);
  const absl::Time now = clock_.Now();
  if (accepted > now + kClockSlack || accepted < now - kSpooledAtMost) return errors::ProofTooOld();
  const SignedContent content = {
      .size = proof.size(), .sha256 = proof.sha256(), .is_error = proof.is_error()};
  RETURN_IF_ERROR(VerifyResultSignature(signature.value(), signature.certificate_chain_pem(),
                                        SignedFieldsOf(*upload, upload->attempt, content), fleet_,
                                        root_, accepted));
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
  // A revocation names the certificates that are valid then.
  if (leaf.NotAfter() < now) {
    RETURN_IF_ERROR(CheckEnrolled(std::get<NodeIdentity>(node.identity.name).name, leaf));
  }
  upload->delivery = {};
  upload->delivery.uri = *ToUri(node.identity);
  upload->delivery.vouched_by = *ToUri(relay.identity);
  return absl::OkStatus();
}

absl::Status SpooledProofs::CheckEnrolled(const std::string& name, const Certificate& leaf) const {
  ASSIGN_OR_RETURN(const auto node, store_.GetNode(name));
  if (!node || node->revoked_at != 0) return errors::SignerRevoked();
  // Certificates have whole seconds.
  const absl::Time issued = leaf.NotBefore() + kBackdate + absl::Seconds(1);
  return issued < absl::FromUnixMicros(node->joined_at) ? errors::SignerRevoked()
                                                        : absl::OkStatus();
}

}  // namespace muster
