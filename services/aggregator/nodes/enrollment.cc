#include "services/aggregator/nodes/enrollment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/aggregator/nodes/parents.h"
#include "services/aggregator/runs/authorities.h"
#include "services/common/base/names.h"
#include "services/common/base/new_name.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/joining.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/join_token.h"
#include "services/common/identity/key.h"

namespace muster {
namespace {

constexpr absl::Duration kLeastLife = absl::Minutes(1);
constexpr absl::Duration kMostLife = absl::Hours(24);
constexpr int kMaxListed = 1'000;
constexpr size_t kMaxReason = 1024;

bool IsLabelText(std::string_view text) {
  return text.size() <= kMaxName && text.find_first_not_of(
                                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                        "0123456789._/-") == std::string_view::npos;
}

absl::Status CheckRelay(const JoinTokenRecord& wanted) {
  if (wanted.parents.size() > kMaxParents) return errors::InvalidToken("it has too many parents");
  if (!wanted.relay) return absl::OkStatus();
  if (wanted.node.empty()) return errors::InvalidToken("a token for a relay requires a name");
  return absl::OkStatus();
}

absl::Status CheckPlaces(const JoinTokenRecord& wanted) {
  if (wanted.node.empty()) {
    if (wanted.count >= 1 && wanted.count <= kMaxTokenUses) return absl::OkStatus();
    return errors::InvalidToken(
        absl::StrCat("it is for one named node, or for 1 to ", kMaxTokenUses, " nodes"));
  }
  if (wanted.count > 1) return errors::InvalidToken("a token for a named node has count 1");
  return CheckNodeName(wanted.node);
}

// Fails if the name belongs to the other kind: no machine could join with the token, as JoinNode
// checks.
absl::Status CheckKind(StateStore& store, const JoinTokenRecord& wanted) {
  ASSIGN_OR_RETURN(const auto holder, store.GetNode(wanted.node));
  if (!holder || holder->relay == wanted.relay) return absl::OkStatus();
  return errors::NameOfOtherKind(wanted.node, holder->relay ? "relay" : "node");
}

}  // namespace

absl::Status CheckNodeName(const std::string& name) {
  if (name == kGlobalNode) return errors::InvalidToken("\"global\" cannot be the name of a node");
  if (name == kRootRelay) return errors::InvalidToken("\"root\" is the name of the root relay");
  return ValidateNewName("node", name);
}

absl::Status CheckLabels(const Labels& labels) {
  if (labels.size() > kMaxLabels) return errors::InvalidLabel("the request has too many labels");
  for (const auto& [key, value] : labels) {
    if (key.empty() || !IsLabelText(key)) return errors::InvalidLabel("a key is not allowed");
    if (!IsLabelText(value)) {
      return errors::InvalidLabel(absl::StrCat("the value of \"", key, "\" is not allowed"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<JoinTokenRecord> Enrollment::CreateToken(JoinTokenRecord wanted,
                                                        absl::Duration ttl) {
  if (!IsJoinTokenId(wanted.id)) return errors::InvalidToken("its id is not 32 hex digits");
  if (const auto key = PublicKey::FromPem(wanted.public_key_pem); !key.ok()) {
    return errors::InvalidToken(ToStd(key.status().message()));
  }
  for (const absl::Status& status : {CheckPlaces(wanted), CheckRelay(wanted)}) {
    if (!status.ok()) return status;
  }
  RETURN_IF_ERROR(CheckLabels(wanted.labels));
  if (ttl < kLeastLife || ttl > kMostLife) {
    return errors::InvalidTimeout("ttl", ttl, "1 minute to 24 hours");
  }
  if (wanted.relay) {
    RETURN_IF_ERROR(CheckNoLoop(store_, wanted.node, wanted.parents));
  }
  if (!wanted.node.empty()) {
    wanted.count = 1;
    RETURN_IF_ERROR(CheckKind(store_, wanted));
  }
  wanted.created_at = Now();
  wanted.expires_at = wanted.created_at + absl::ToInt64Microseconds(ttl);
  ASSIGN_OR_RETURN(const auto created, store_.ApplyAndWait(CreateJoinToken{wanted}));
  switch (created.verdict) {
    case CreateJoinToken::Verdict::kCreated:
      return wanted;
    case CreateJoinToken::Verdict::kExists:
      return errors::TokenExists(wanted.id);
    case CreateJoinToken::Verdict::kTooMany:
      return errors::TooManyTokens(kMaxJoinTokens);
    case CreateJoinToken::Verdict::kNodeRevoked:
      return errors::TokenForRevokedNode(wanted.node);
    case CreateJoinToken::Verdict::kNoRelay:
      return errors::RelayNotFound(created.relay);
  }
  return absl::InternalError("unknown verdict");
}

absl::StatusOr<std::vector<JoinTokenRecord>> Enrollment::Tokens() {
  return store_.ListJoinTokens(kMaxJoinTokens);
}

absl::StatusOr<JoinTokenRecord> Enrollment::RevokeToken(const std::string& id, const Actor& actor) {
  ASSIGN_OR_RETURN(const auto revoked, store_.ApplyAndWait(RevokeJoinToken{id, actor, Now()}));
  if (!revoked.found) return errors::TokenNotFound(id);
  ASSIGN_OR_RETURN(const auto token, store_.GetJoinToken(id));
  if (!token) return errors::TokenNotFound(id);
  return *token;
}

absl::StatusOr<Page<NodeRecord>> Enrollment::Nodes(const Labels& labels,
                                                   std::string_view page_token, int limit) {
  if (limit < 0 || limit > kMaxListed) return errors::InvalidPageSize(kMaxListed);
  RETURN_IF_ERROR(CheckLabels(labels));
  if (!page_token.empty() && !ValidateName("page_token", page_token).ok()) {
    return errors::InvalidPageToken();
  }
  return store_.ListNodes(labels, page_token, limit == 0 ? kMaxListed : limit);
}

absl::StatusOr<NodeRecord> Enrollment::Node(const std::string& name) {
  ASSIGN_OR_RETURN(auto node, store_.GetNode(name));
  if (!node) return errors::NodeNotEnrolled(name);
  return *std::move(node);
}

absl::StatusOr<NodeRecord> Enrollment::Label(const std::string& name, Labels set,
                                             std::vector<std::string> remove, const Actor& actor) {
  RETURN_IF_ERROR(CheckLabels(set));
  ASSIGN_OR_RETURN(const auto labelled,
                   store_.ApplyAndWait(LabelNode{name, std::move(set), std::move(remove),
                                                 kMaxLabels, actor, Now()}));
  if (!labelled.found) return errors::NodeNotEnrolled(name);
  if (labelled.too_many) return errors::InvalidLabel("the node would have too many labels");
  return Node(name);
}

absl::StatusOr<NodeRecord> Enrollment::Revoke(const std::string& name, const std::string& reason,
                                              const Actor& actor) {
  if (reason.size() > kMaxReason) return errors::TextTooLong("reason", kMaxReason);
  ASSIGN_OR_RETURN(const auto revoked, store_.ApplyAndWait(RevokeNode{name, reason, actor, Now()}));
  if (!revoked.found) return errors::NodeNotEnrolled(name);
  return Node(name);
}

absl::Status Enrollment::Remove(const std::string& name, const Actor& actor) {
  ASSIGN_OR_RETURN(const auto removed, store_.ApplyAndWait(RemoveNode{name, actor, Now()}));
  return removed.found ? absl::OkStatus() : errors::NodeNotEnrolled(name);
}

}  // namespace muster
