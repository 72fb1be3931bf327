#include "services/aggregator/nodes/joining.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/names.h"
#include "services/common/base/strings.h"
#include "services/common/errors.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/join_token.h"
#include "services/common/identity/signing_request.h"

namespace muster {
namespace {

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
  return absl::InternalError("no such verdict");
}

absl::Status CheckNodeName(const std::string& node) {
  if (node == kGlobalNode) return errors::InvalidToken("\"global\" is no node's name");
  return ValidateName("node", node);
}

}  // namespace

absl::StatusOr<JoinedNode> Joining::Join(const std::string& token_id, const std::string& node,
                                         const std::string& csr_pem, const std::string& proof) {
  const auto key = VerifySigningRequest(csr_pem);
  if (!key.ok()) return key.status();
  const auto token = store_.GetJoinToken(token_id);
  if (!token.ok()) return token.status();
  if (!*token) return errors::TokenRefused();
  const auto token_key = PublicKey::FromPem((*token)->public_key_pem);
  if (!token_key.ok()) return token_key.status();
  if (!token_key->Verify(JoinProofText(token_id, node, csr_pem), proof)) {
    return errors::TokenRefused();
  }
  const std::string name = node.empty() ? (*token)->node : node;
  if (absl::Status status = CheckNodeName(name); !status.ok()) return status;
  const auto digest = key->Sha256();
  if (!digest.ok()) return digest.status();
  auto made = authorities_.SignUnrecorded(NodeIdentity{name}, csr_pem, {}, kNodeValidity,
                                          absl::StrCat("join token ", token_id));
  if (!made.ok()) return made.status();

  JoinNode join;
  join.token = token_id;
  join.name = name;
  join.key_sha256 = *digest;
  join.certificate_chain_pem =
      absl::StrCat(made->certificate.leaf_pem, made->certificate.chain_pem);
  join.issued = std::move(made->record);
  const auto joined = store_.ApplyAndWait(std::move(join));
  if (!joined.ok()) return joined.status();
  absl::Status refusal = Refusal(joined->verdict, name);
  if (joined->verdict == JoinNode::Verdict::kUsed) {
    Log(LogLevel::kWarning, "a join token was used again, by another key",
        {{"token", token_id}, {"node", name}});
  }
  if (!refusal.ok()) return refusal;
  const auto leaf = Certificate::FromPem(joined->certificate_chain_pem);
  if (!leaf.ok()) return leaf.status();
  return JoinedNode{name, joined->certificate_chain_pem, leaf->NotAfter()};
}

absl::StatusOr<NodeIdentity> Joining::Returning(const std::string& chain_pem,
                                                const std::string& csr_pem,
                                                const std::string& proof) {
  const auto chain = ParseChain(chain_pem);
  if (!chain.ok()) return chain.status();
  const Certificate& leaf = chain->front();
  const auto uri = leaf.Uri();
  if (!uri.ok()) return errors::ReturnRefused(ToStd(uri.status().message()));
  const auto identity = ParseIdentity(*uri, authorities_.fleet());
  if (!identity.ok()) return errors::ReturnRefused(ToStd(identity.status().message()));
  const auto* node = std::get_if<NodeIdentity>(&identity->name);
  if (node == nullptr) return errors::ReturnRefused("it is not a node's");
  const absl::Time now = clock_.Now();
  const Certificate roots[] = {authorities_.root()};
  const absl::Status trusted =
      VerifyChain(leaf, std::span(*chain).subspan(1), roots, Usage::kClient,
                  std::min(now, leaf.NotAfter() - absl::Seconds(1)));
  if (!trusted.ok()) return errors::ReturnRefused(ToStd(trusted.message()));
  const auto key = leaf.Key();
  if (!key.ok() || !key->Verify(ReturnProofText(csr_pem), proof)) {
    return errors::ReturnRefused("the request was not signed with its key");
  }
  if (now > leaf.NotAfter() + kReturnWithin) return errors::ReturnTooLate();

  // Whoever held the name before the node joined last may not come back as it.
  const auto enrolled = store_.GetNode(node->name);
  if (!enrolled.ok()) return enrolled.status();
  if (!*enrolled) return errors::NodeNotEnrolled(node->name);
  const auto issued = store_.FindIssued(leaf.IssuerKeyId(), leaf.Serial());
  if (!issued.ok()) return issued.status();
  if (!*issued || (*issued)->issued_at < (*enrolled)->joined_at)
    return errors::ReturnRefused("another machine has joined under this name since");
  return *node;
}

absl::StatusOr<JoinedNode> Joining::Return(const std::string& chain_pem, const std::string& csr_pem,
                                           const std::string& proof) {
  const auto node = Returning(chain_pem, csr_pem, proof);
  if (!node.ok()) return node.status();
  const auto made = authorities_.SignForNode(*node, csr_pem, "a node that returned");
  if (!made.ok()) return made.status();
  return JoinedNode{node->name, absl::StrCat(made->leaf_pem, made->chain_pem), made->expires};
}

}  // namespace muster
