#include "services/aggregator/nodes/joining.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/aggregator/nodes/enrollment.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/text_values.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/join_token.h"
#include "services/common/identity/revocation.h"
#include "services/common/identity/signing_request.h"

namespace muster {
namespace {

constexpr size_t kMaxTargets = 16;

absl::Status Refusal(JoinNode::Verdict verdict, const std::string& node) {
  switch (verdict) {
    case JoinNode::Verdict::kJoined:
    case JoinNode::Verdict::kAgain:
      return absl::OkStatus();
    case JoinNode::Verdict::kNoToken:
      return errors::TokenRefused();
    case JoinNode::Verdict::kExpired:
      return errors::TokenExpired();
    case JoinNode::Verdict::kUsed:
      return errors::TokenUsed();
    case JoinNode::Verdict::kOtherNode:
      return errors::TokenOfOtherNode();
    case JoinNode::Verdict::kEnrolled:
      return errors::NodeEnrolled(node);
    case JoinNode::Verdict::kRevoked:
      return errors::NodeRevoked(node);
  }
  return absl::InternalError("unknown verdict");
}

// Returns the register's name of the holder of a certificate, if it can be registered.
std::optional<std::string> NameOf(const Identity& identity) {
  if (const auto* node = std::get_if<NodeIdentity>(&identity.name)) return node->name;
  const auto* service = std::get_if<ServiceIdentity>(&identity.name);
  if (service == nullptr || service->role != ServiceRole::kRelay) return std::nullopt;
  return service->name;
}

absl::Status CheckTargets(const std::vector<std::string>& targets) {
  if (targets.size() > kMaxTargets) return errors::InvalidTarget("there are more than 16");
  for (const std::string& target : targets) {
    const auto address = ParseHostPort(target);
    if (!address || address->port == 0) return errors::InvalidTarget("one is not host:port");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JoinTokenRecord> Joining::ProvenToken(const JoinParameters& parameters) {
  ASSIGN_OR_RETURN(const auto token, store_.GetJoinToken(parameters.token_id));
  if (!token) return errors::TokenRefused();
  ASSIGN_OR_RETURN(const auto key, PublicKey::FromPem(token->public_key_pem));
  if (!key.Verify(JoinProofText(parameters.token_id, parameters.name, parameters.csr_pem),
                  parameters.proof)) {
    return errors::TokenRefused();
  }
  // A relay sends its addresses, a node does not.
  const bool as_relay = !parameters.relay_targets.empty() || !parameters.join_targets.empty();
  if (as_relay != token->relay) {
    return token->relay ? errors::TokenIsForRelay() : errors::TokenIsForNode();
  }
  if (as_relay && parameters.relay_targets.empty()) {
    return errors::InvalidTarget("a relay requires an address for its children");
  }
  for (const auto* targets : {&parameters.relay_targets, &parameters.join_targets}) {
    RETURN_IF_ERROR(CheckTargets(*targets));
  }
  return *token;
}

absl::StatusOr<JoinedMember> Joining::Join(const JoinParameters& parameters) {
  ASSIGN_OR_RETURN(const auto key, VerifySigningRequest(parameters.csr_pem));
  ASSIGN_OR_RETURN(const auto token, ProvenToken(parameters));
  NodeRecord member;
  member.name = parameters.name.empty() ? token.node : parameters.name;
  member.relay = token.relay;
  member.relay_targets = parameters.relay_targets;
  member.join_targets = parameters.join_targets;
  RETURN_IF_ERROR(CheckNodeName(member.name));
  ASSIGN_OR_RETURN(const auto digest, key.Sha256());
  ASSIGN_OR_RETURN(
      auto made, authorities_.SignMemberUnrecorded(
                     member, parameters.csr_pem, absl::StrCat("join token ", parameters.token_id)));

  JoinNode join;
  join.token = parameters.token_id;
  join.name = member.name;
  join.key_sha256 = digest;
  join.certificate_chain_pem = absl::StrCat(made.certificate.leaf_pem, made.certificate.chain_pem);
  join.issued = std::move(made.record);
  join.relay_targets = parameters.relay_targets;
  join.join_targets = parameters.join_targets;
  ASSIGN_OR_RETURN(const auto joined, store_.ApplyAndWait(std::move(join)));
  absl::Status refusal = Refusal(joined.verdict, member.name);
  if (joined.verdict == JoinNode::Verdict::kUsed) {
    LogLimited(LogLevel::kWarning, "a join token was used again, by another key",
               parameters.token_id, {{"token", parameters.token_id}, {"node", member.name}});
  }
  if (!refusal.ok()) return refusal;
  ASSIGN_OR_RETURN(const auto leaf, Certificate::FromPem(joined.certificate_chain_pem));
  return JoinedMember{member.name, member.relay, joined.certificate_chain_pem, leaf.NotAfter(),
                      token.parents};
}

absl::StatusOr<NodeRecord> Joining::Rejoining(const std::string& chain_pem,
                                              const std::string& csr_pem,
                                              const std::string& proof) {
  ASSIGN_OR_RETURN(const auto chain, ParseChain(chain_pem));
  const Certificate& leaf = chain.front();
  const auto uri = leaf.Uri();
  if (!uri.ok()) return errors::ReturnRefused(ToStd(uri.status().message()));
  const auto identity = ParseIdentity(*uri, authorities_.fleet());
  if (!identity.ok()) return errors::ReturnRefused(ToStd(identity.status().message()));
  const std::optional<std::string> name = NameOf(*identity);
  if (!name) return errors::ReturnRefused("it belongs neither to a node nor to a joined relay");
  const absl::Time now = clock_.Now();
  const Certificate roots[] = {authorities_.root()};
  const absl::Status trusted = VerifyChain(leaf, std::span(chain).subspan(1), roots, Usage::kClient,
                                           std::min(now, leaf.NotAfter() - absl::Seconds(1)));
  if (!trusted.ok()) return errors::ReturnRefused(ToStd(trusted.message()));
  const auto key = leaf.Key();
  if (!key.ok() || !key->Verify(ReturnProofText(csr_pem), proof)) {
    return errors::ReturnRefused("the request was not signed with its key");
  }
  if (now > leaf.NotAfter() + kReturnWithin) return errors::ReturnTooLate();

  // A machine that held the name before the last join may not renew.
  ASSIGN_OR_RETURN(auto member, store_.GetNode(*name));
  if (!member || member->uri != *uri) return errors::NodeNotEnrolled(*name);
  ASSIGN_OR_RETURN(const auto issued, store_.FindIssued(leaf.IssuerKeyId(), leaf.Serial()));
  if (!issued || issued->issued_at < member->joined_at)
    return errors::ReturnRefused("another machine has joined under this name since");
  return *std::move(member);
}

absl::StatusOr<JoinedMember> Joining::Rejoin(const std::string& chain_pem,
                                             const std::string& csr_pem, const std::string& proof) {
  ASSIGN_OR_RETURN(const auto member, Rejoining(chain_pem, csr_pem, proof));
  ASSIGN_OR_RETURN(const auto chain, ParseChain(chain_pem));
  const std::string renewed =
      CertificateSubject(chain.front().IssuerKeyId(), chain.front().Serial());
  ASSIGN_OR_RETURN(const auto made,
                   authorities_.SignForMember(member, csr_pem, "one that returned", renewed));
  return JoinedMember{member.name, member.relay, absl::StrCat(made.leaf_pem, made.chain_pem),
                      made.expires, member.parents};
}

}  // namespace muster
