#include "services/common/store/sqlite/identities.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/store/sqlite/nodes.h"

namespace muster::sqlite {
namespace {

#define MUSTER_ISSUED_COLUMNS "uri, issuer, serial, issued_to, issued_at, expires_at"

IssuedRecord ParseIssued(Rows& rows) {
  IssuedRecord issued;
  issued.uri = rows.Text();
  issued.issuer = rows.Text();
  issued.serial = rows.Text();
  issued.issued_to = rows.Text();
  issued.issued_at = rows.Int();
  issued.expires_at = rows.Int();
  return issued;
}

}  // namespace

bool AddRevocation(WriteContext& context, const RevocationRecord& revocation) {
  const int64_t inserted =
      context.db.Run("INSERT INTO revocations VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                     revocation.subject, revocation.reason, revocation.revoked_by, revocation.at);
  if (inserted == 0) return false;
  ChangeRecord change;
  change.at = revocation.at;
  change.kind = ChangeKind::kRevoked;
  change.text = revocation.subject;
  context.AddChange(change);
  AuditRecord record;
  record.at = revocation.at;
  record.kind = AuditKind::kRevocation;
  record.actor = revocation.revoked_by;
  record.text =
      absl::StrCat(revocation.subject, revocation.reason.empty() ? "" : ": ", revocation.reason);
  context.AddAudit(record);
  return true;
}

absl::StatusOr<Revoke::Result> Execute(WriteContext& context, const Revoke& command) {
  return Revoke::Result{.changed = AddRevocation(context, command.revocation)};
}

void AddIssued(WriteContext& context, const IssuedRecord& issued) {
  // The store has no clock: the time of each new certificate determines which ones are old.
  context.db.Run(
      "DELETE FROM issued WHERE (issuer, serial) IN"
      " (SELECT issuer, serial FROM issued WHERE expires_at < ? ORDER BY expires_at LIMIT 4)",
      issued.issued_at - kIssuedKept);
  context.db.Run(
      "INSERT INTO issued (issuer, serial, uri, issued_to, issued_at, expires_at)"
      " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
      issued.issuer, issued.serial, issued.uri, issued.issued_to, issued.issued_at,
      issued.expires_at);
}

absl::StatusOr<RecordIssued::Result> Execute(WriteContext& context, const RecordIssued& command) {
  using Verdict = RecordIssued::Verdict;
  const IssuedRecord& issued = command.issued;
  if (!command.node.empty()) {
    const auto node = ReadNode(context.db, command.node);
    if (!node || node->uri != issued.uri) return RecordIssued::Result{Verdict::kNotEnrolled};
    if (node->revoked_at != 0) return RecordIssued::Result{Verdict::kRevoked};
    AddIssued(context, issued);
    return RecordIssued::Result{};
  }
  AddIssued(context, issued);
  AuditRecord record;
  record.at = issued.issued_at;
  record.kind = AuditKind::kCredential;
  record.actor = issued.issued_to;
  record.text = absl::StrCat(issued.uri, " ", issued.issuer, ":", issued.serial);
  context.AddAudit(record);
  return RecordIssued::Result{};
}

absl::StatusOr<AppendAudit::Result> Execute(WriteContext& context, const AppendAudit& command) {
  context.AddAudit(command.record);
  return AppendAudit::Result{};
}

std::vector<RevocationRecord> ReadRevocations(Connection& db) {
  std::vector<RevocationRecord> revocations;
  Rows rows =
      db.Query("SELECT subject, reason, revoked_by, at FROM revocations ORDER BY at, subject");
  while (rows.Next()) {
    RevocationRecord revocation;
    revocation.subject = rows.Text();
    revocation.reason = rows.Text();
    revocation.revoked_by = rows.Text();
    revocation.at = rows.Int();
    revocations.push_back(std::move(revocation));
  }
  return revocations;
}

std::optional<IssuedRecord> FindIssued(Connection& db, std::string_view issuer,
                                       std::string_view serial) {
  Rows rows =
      db.Query("SELECT " MUSTER_ISSUED_COLUMNS " FROM issued WHERE issuer = ? AND serial = ?",
               issuer, serial);
  if (!rows.Next()) return std::nullopt;
  return ParseIssued(rows);
}

std::vector<IssuedRecord> ReadIssued(Connection& db, std::string_view prefix, int limit) {
  std::vector<IssuedRecord> all;
  Rows rows =
      db.Query("SELECT " MUSTER_ISSUED_COLUMNS
               " FROM issued WHERE uri >= ? AND uri < ? ORDER BY issued_at DESC, serial LIMIT ?",
               prefix, absl::StrCat(std::string(prefix), "\x7f"), std::clamp(limit, 0, 10'000));
  while (rows.Next()) {
    all.push_back(ParseIssued(rows));
  }
  return all;
}

}  // namespace muster::sqlite
