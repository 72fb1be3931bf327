#include "services/common/store/sqlite/nodes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "services/common/store/sqlite/identities.h"

namespace muster::sqlite {
namespace {

#define MUSTER_TOKEN_COLUMNS                                                                      \
  "id, public_key_pem, node, count, labels, created_by, created_at, expires_at, revoked, relay, " \
  "parents"

#define MUSTER_NODE_COLUMNS                                                           \
  "name, uri, labels, joined_at, join_token, revoked_at, revoke_reason, revoked_by, " \
  "COALESCE((SELECT expires_at FROM issued WHERE issued.uri = nodes.uri"              \
  " ORDER BY issued_at DESC LIMIT 1), 0), relay, relay_targets, join_targets, parents"

std::string LabelLines(const Labels& labels) {
  std::string lines;
  for (const auto& [key, value] : labels) absl::StrAppend(&lines, key, "=", value, "\n");
  return lines;
}

Labels ParseLabels(const std::string& lines) {
  Labels labels;
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> label = absl::StrSplit(line, absl::MaxSplits('=', 1));
    labels.insert(label);
  }
  return labels;
}

using Lines = std::vector<std::string>;

// Names and addresses contain no line feed.
Lines ParseLines(const std::string& text) { return absl::StrSplit(text, '\n', absl::SkipEmpty()); }

JoinTokenRecord ParseToken(Rows& rows) {
  JoinTokenRecord token;
  token.id = rows.Text();
  token.public_key_pem = rows.Text();
  token.node = rows.Text();
  token.count = static_cast<int32_t>(rows.Int());
  token.labels = ParseLabels(rows.Text());
  token.created_by = rows.Text();
  token.created_at = rows.Int();
  token.expires_at = rows.Int();
  token.revoked = rows.Bool();
  token.relay = rows.Bool();
  token.parents = ParseLines(rows.Text());
  return token;
}

NodeRecord ParseNode(Rows& rows) {
  NodeRecord node;
  node.name = rows.Text();
  node.uri = rows.Text();
  node.labels = ParseLabels(rows.Text());
  node.joined_at = rows.Int();
  node.join_token = rows.Text();
  node.revoked_at = rows.Int();
  node.revoke_reason = rows.Text();
  node.revoked_by = rows.Text();
  node.expires_at = rows.Int();
  node.relay = rows.Bool();
  node.relay_targets = ParseLines(rows.Text());
  node.join_targets = ParseLines(rows.Text());
  node.parents = ParseLines(rows.Text());
  return node;
}

void AddJoined(Connection& db, JoinTokenRecord& token) {
  {
    Rows rows =
        db.Query("SELECT node FROM joins WHERE token = ? ORDER BY at DESC, node DESC LIMIT ?",
                 token.id, kListedJoins);
    while (rows.Next()) token.joined.insert(token.joined.begin(), rows.Text());
  }
  Rows count = db.Query("SELECT COUNT(*) FROM joins WHERE token = ?", token.id);
  if (count.Next()) token.joined_count = static_cast<int32_t>(count.Int());
}

// `uri`: the identity of the node; empty if it has not joined.
void Audit(WriteContext& context, int64_t at, const Actor& actor, const std::string& node,
           const std::string& uri, std::string text) {
  AuditRecord record;
  record.at = at;
  record.kind = AuditKind::kNode;
  record.SetActor(actor);
  record.key.node = node;
  record.subject = uri;
  record.text = std::move(text);
  context.audit.Add(record);
}

// Revokes all unexpired certificates of the node, of which renewals are limited. A repeated request
// to join gets none of them.
void RevokeCertificates(WriteContext& context, const NodeRecord& node, const std::string& reason,
                        const Actor& actor, int64_t at) {
  std::vector<std::string> subjects;
  {
    Rows rows = context.db.Query(
        "SELECT issuer, serial FROM issued WHERE uri = ? AND expires_at > ?", node.uri, at);
    while (rows.Next()) {
      const std::string issuer = rows.Text();
      subjects.push_back(absl::StrCat(issuer, ":", rows.Text()));
    }
  }
  for (std::string& subject : subjects) {
    AddRevocation(context, {std::move(subject), reason, actor.uri, at}, actor.vouched_by);
  }
  context.db.Run("UPDATE joins SET certificate_chain_pem = '' WHERE node = ?", node.name);
}

JoinNode::Verdict Judge(const JoinNode& command, const std::optional<JoinTokenRecord>& token,
                        const std::optional<NodeRecord>& node) {
  using Verdict = JoinNode::Verdict;
  if (!token || token->revoked) return Verdict::kNoToken;
  if (command.issued.issued_at >= token->expires_at) return Verdict::kExpired;
  if (!token->node.empty() && token->node != command.name) return Verdict::kOtherNode;
  if (node && node->revoked_at != 0) return Verdict::kRevoked;
  if (token->joined_count >= token->count) return Verdict::kUsed;
  if (node && (token->node.empty() || node->relay != token->relay)) return Verdict::kEnrolled;
  return Verdict::kJoined;
}

// Returns the earlier outcome for this key and token, if any.
std::optional<JoinNode::Result> Before(Connection& db, const JoinNode& command,
                                       const std::optional<JoinTokenRecord>& token,
                                       const std::optional<NodeRecord>& node) {
  Rows rows =
      db.Query("SELECT node, certificate_chain_pem FROM joins WHERE token = ? AND key_sha256 = ?",
               command.token, Blob{command.key_sha256});
  if (!rows.Next()) return std::nullopt;
  JoinNode::Result result;
  const std::string joined_as = rows.Text();
  if (!token || token->revoked) return result;
  if (joined_as != command.name) {
    result.verdict = JoinNode::Verdict::kOtherNode;
  } else if (command.issued.issued_at >= token->expires_at) {
    result.verdict = JoinNode::Verdict::kExpired;
  } else if (!node || node->revoked_at != 0) {
    result.verdict = JoinNode::Verdict::kRevoked;
  } else {
    result.certificate_chain_pem = rows.Text();
    // Empty: the node was removed, or joined again, since then.
    result.verdict = result.certificate_chain_pem.empty() ? JoinNode::Verdict::kRevoked
                                                          : JoinNode::Verdict::kAgain;
  }
  return result;
}

}  // namespace

absl::StatusOr<CreateJoinToken::Result> Execute(WriteContext& context,
                                                const CreateJoinToken& command) {
  using Verdict = CreateJoinToken::Verdict;
  const JoinTokenRecord& token = command.token;
  // The store has no clock: the time of each new token determines which ones are old.
  const int64_t forget = token.created_at - kJoinTokenKept;
  context.db.Run(
      "DELETE FROM joins WHERE token IN (SELECT id FROM join_tokens WHERE expires_at < ?)", forget);
  context.db.Run("DELETE FROM join_tokens WHERE expires_at < ?", forget);
  if (ReadJoinToken(context.db, token.id)) return CreateJoinToken::Result{Verdict::kExists};
  {
    Rows rows = context.db.Query("SELECT COUNT(*) FROM join_tokens");
    if (rows.Next() && rows.Int() >= kMaxJoinTokens) {
      return CreateJoinToken::Result{Verdict::kTooMany};
    }
  }
  if (const auto node = ReadNode(context.db, token.node); node && node->revoked_at != 0) {
    return CreateJoinToken::Result{Verdict::kNodeRevoked};
  }
  for (const std::string& parent : token.parents) {
    const auto relay = ReadNode(context.db, parent);
    if (!relay || !relay->relay || relay->revoked_at != 0) {
      return CreateJoinToken::Result{Verdict::kNoRelay, parent};
    }
  }
  context.db.Run("INSERT INTO join_tokens (" MUSTER_TOKEN_COLUMNS
                 ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
                 token.id, token.public_key_pem, token.node, token.count, LabelLines(token.labels),
                 token.created_by, token.created_at, token.expires_at, token.relay,
                 absl::StrJoin(token.parents, "\n"));
  Audit(context, token.created_at, token.created_by, token.node, "",
        absl::StrCat("join token ", token.id, " created for ", token.relay ? "relay " : "",
                     token.node.empty() ? absl::StrCat(token.count, " nodes") : token.node));
  return CreateJoinToken::Result{};
}

absl::StatusOr<RevokeJoinToken::Result> Execute(WriteContext& context,
                                                const RevokeJoinToken& command) {
  const auto token = ReadJoinToken(context.db, command.id);
  if (!token) return RevokeJoinToken::Result{};
  if (!token->revoked) {
    context.db.Run("UPDATE join_tokens SET revoked = 1 WHERE id = ?", command.id);
    Audit(context, command.at, command.actor, token->node, "",
          absl::StrCat("join token ", command.id, " revoked"));
  }
  return RevokeJoinToken::Result{.found = true};
}

absl::StatusOr<JoinNode::Result> Execute(WriteContext& context, const JoinNode& command) {
  const auto token = ReadJoinToken(context.db, command.token);
  const auto node = ReadNode(context.db, command.name);
  if (auto before = Before(context.db, command, token, node)) return *std::move(before);
  const JoinNode::Verdict verdict = Judge(command, token, node);
  const int64_t at = command.issued.issued_at;
  if (verdict != JoinNode::Verdict::kJoined) {
    if (verdict == JoinNode::Verdict::kUsed) {
      // The actor is not the name, which the sender chooses.
      AuditRecord refused;
      refused.at = at;
      refused.kind = AuditKind::kNode;
      refused.actor = absl::StrCat("join token ", command.token);
      refused.key.node = command.name;
      refused.text = absl::StrCat("join token ", command.token, " was used again, by another key");
      context.audit.AddRefusal(refused);
    }
    return JoinNode::Result{.verdict = verdict, .certificate_chain_pem = {}};
  }
  Labels labels = node ? node->labels : Labels();
  for (const auto& [key, value] : token->labels) labels[key] = value;
  if (node) RevokeCertificates(context, *node, "it joined again", command.issued.uri, at);
  context.db.Run("INSERT INTO joins VALUES (?, ?, ?, ?, ?)", command.token,
                 Blob{command.key_sha256}, command.name, command.certificate_chain_pem, at);
  context.db.Run(
      "INSERT INTO nodes (name, uri, labels, joined_at, join_token, revoked_at, revoke_reason,"
      " revoked_by, relay, relay_targets, join_targets, parents)"
      " VALUES (?, ?, ?, ?, ?, 0, '', '', ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
      " uri = excluded.uri, labels = excluded.labels, joined_at = excluded.joined_at,"
      " join_token = excluded.join_token, relay_targets = excluded.relay_targets,"
      " join_targets = excluded.join_targets, parents = excluded.parents",
      command.name, command.issued.uri, LabelLines(labels), at, command.token, token->relay,
      absl::StrJoin(command.relay_targets, "\n"), absl::StrJoin(command.join_targets, "\n"),
      absl::StrJoin(token->parents, "\n"));
  AddIssued(context, command.issued);
  Audit(context, at, command.issued.uri, command.name, command.issued.uri,
        absl::StrCat(node ? "joined again" : "joined", " with token ", command.token));
  return JoinNode::Result{.verdict = verdict,
                          .certificate_chain_pem = command.certificate_chain_pem};
}

absl::StatusOr<LabelNode::Result> Execute(WriteContext& context, const LabelNode& command) {
  auto node = ReadNode(context.db, command.name);
  if (!node) return LabelNode::Result{};
  const std::string before = LabelLines(node->labels);
  for (const std::string& key : command.remove) node->labels.erase(key);
  for (const auto& [key, value] : command.set) node->labels[key] = value;
  if (node->labels.size() > command.max_labels) {
    return LabelNode::Result{.found = true, .too_many = true};
  }
  const std::string lines = LabelLines(node->labels);
  if (lines != before) {
    context.db.Run("UPDATE nodes SET labels = ? WHERE name = ?", lines, command.name);
    Audit(context, command.at, command.actor, command.name, node->uri, "labels changed");
  }
  return LabelNode::Result{.found = true};
}

absl::StatusOr<RevokeNode::Result> Execute(WriteContext& context, const RevokeNode& command) {
  const auto node = ReadNode(context.db, command.name);
  if (!node) return RevokeNode::Result{};
  if (node->revoked_at == 0) {
    RevokeCertificates(context, *node, command.reason, command.actor, command.at);
    context.db.Run(
        "UPDATE nodes SET revoked_at = ?, revoke_reason = ?, revoked_by = ? WHERE name = ?",
        command.at, command.reason, command.actor.uri, command.name);
    Audit(context, command.at, command.actor, command.name, node->uri,
          absl::StrCat("revoked", command.reason.empty() ? "" : ": ", command.reason));
  }
  return RevokeNode::Result{.found = true};
}

absl::StatusOr<RemoveNode::Result> Execute(WriteContext& context, const RemoveNode& command) {
  const auto node = ReadNode(context.db, command.name);
  if (!node) return RemoveNode::Result{};
  RevokeCertificates(context, *node, "removed", command.actor, command.at);
  context.db.Run("DELETE FROM nodes WHERE name = ?", command.name);
  Audit(context, command.at, command.actor, command.name, node->uri, "removed");
  return RemoveNode::Result{.found = true};
}

std::optional<JoinTokenRecord> ReadJoinToken(Connection& db, std::string_view id) {
  std::optional<JoinTokenRecord> token;
  {
    Rows rows = db.Query("SELECT " MUSTER_TOKEN_COLUMNS " FROM join_tokens WHERE id = ?", id);
    if (rows.Next()) token = ParseToken(rows);
  }
  if (token) AddJoined(db, *token);
  return token;
}

std::vector<JoinTokenRecord> ReadJoinTokens(Connection& db, int limit) {
  std::vector<JoinTokenRecord> tokens;
  {
    Rows rows = db.Query("SELECT " MUSTER_TOKEN_COLUMNS
                         " FROM join_tokens ORDER BY created_at DESC, id LIMIT ?",
                         limit);
    while (rows.Next()) tokens.push_back(ParseToken(rows));
  }
  for (JoinTokenRecord& token : tokens) AddJoined(db, token);
  return tokens;
}

std::optional<NodeRecord> ReadNode(Connection& db, std::string_view name) {
  Rows rows = db.Query("SELECT " MUSTER_NODE_COLUMNS " FROM nodes WHERE name = ?", name);
  if (!rows.Next()) return std::nullopt;
  return ParseNode(rows);
}

// The page token is the last name of the previous page.
absl::StatusOr<Page<NodeRecord>> ReadNodes(Connection& db, const Labels& labels,
                                           std::string_view page_token, int limit) {
  limit = std::clamp(limit, 1, 1000);
  Page<NodeRecord> page;
  Rows rows = db.Query("SELECT " MUSTER_NODE_COLUMNS " FROM nodes WHERE name > ? ORDER BY name",
                       page_token);
  while (rows.Next()) {
    NodeRecord node = ParseNode(rows);
    // Both are sorted by key.
    if (!std::includes(node.labels.begin(), node.labels.end(), labels.begin(), labels.end())) {
      continue;
    }
    if (static_cast<int>(page.items.size()) == limit) {
      page.next = page.items.back().name;
      break;
    }
    page.items.push_back(std::move(node));
  }
  return page;
}

}  // namespace muster::sqlite
