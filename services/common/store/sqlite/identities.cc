#include "services/common/store/sqlite/identities.h"

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

bool IsRevoked(Connection& db, std::string_view subject) {
  Rows rows = db.Query("SELECT 1 FROM revocations WHERE subject = ?", subject);
  return rows.Next();
}

bool RenewedTooOften(Connection& db, const IssuedRecord& issued) {
  Rows rows = db.Query(
      "SELECT COUNT(*) FROM (SELECT 1 FROM issued WHERE uri = ? AND issued_at > ? LIMIT ?)",
      issued.uri, issued.issued_at - kRenewalWindow, kMaxRenewals);
  return rows.Next() && rows.Int() >= kMaxRenewals;
}

// Returns kRecorded if the certificate may be recorded.
RecordIssued::Verdict Judge(Connection& db, const RecordIssued& command) {
  using Verdict = RecordIssued::Verdict;
  if (!command.node.empty()) {
    const auto node = ReadNode(db, command.node);
    if (!node || node->uri != command.issued.uri) return Verdict::kNotEnrolled;
    if (node->revoked_at != 0) return Verdict::kRevoked;
  }
  if (IsRevoked(db, command.issued.uri)) return Verdict::kRevoked;
  if (command.renewed.empty()) return Verdict::kRecorded;
  if (IsRevoked(db, command.renewed)) return Verdict::kRevoked;
  return RenewedTooOften(db, command.issued) ? Verdict::kTooMany : Verdict::kRecorded;
}

}  // namespace

bool AddRevocation(WriteContext& context, const RevocationRecord& revocation,
                   const std::string& vouched_by) {
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
  record.SetActor({revocation.revoked_by, vouched_by});
  record.subject = revocation.subject;
  record.text = absl::StrCat("revoked", revocation.reason.empty() ? "" : ": ", revocation.reason);
  context.audit.Add(record);
  return true;
}

absl::StatusOr<Revoke::Result> Execute(WriteContext& context, const Revoke& command) {
  return Revoke::Result{.changed = AddRevocation(context, command.revocation)};
}

void AddIssued(WriteContext& context, const IssuedRecord& issued) {
  // The store has no clock: the time of each new certificate determines which ones are old.
  // An expired certificate needs no revocation either.
  const int64_t expired_before = issued.issued_at - kIssuedKept;
  context.db.Run(
      "DELETE FROM revocations WHERE subject IN (SELECT issuer || ':' || serial FROM issued"
      " WHERE expires_at < ? ORDER BY expires_at, issuer, serial LIMIT 4)",
      expired_before);
  context.db.Run(
      "DELETE FROM issued WHERE (issuer, serial) IN (SELECT issuer, serial FROM issued"
      " WHERE expires_at < ? ORDER BY expires_at, issuer, serial LIMIT 4)",
      expired_before);
  context.db.Run(
      "INSERT INTO issued (issuer, serial, uri, issued_to, issued_at, expires_at)"
      " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
      issued.issuer, issued.serial, issued.uri, issued.issued_to, issued.issued_at,
      issued.expires_at);
}

absl::StatusOr<RecordIssued::Result> Execute(WriteContext& context, const RecordIssued& command) {
  const RecordIssued::Verdict verdict = Judge(context.db, command);
  if (verdict != RecordIssued::Verdict::kRecorded) return RecordIssued::Result{verdict};
  const IssuedRecord& issued = command.issued;
  AddIssued(context, issued);
  if (command.of_operator) {
    ChangeRecord change;
    change.at = issued.issued_at;
    change.kind = ChangeKind::kOperator;
    change.text = issued.uri;
    context.AddChange(change);
  }
  if (!command.node.empty()) return RecordIssued::Result{};
  AuditRecord record;
  record.at = issued.issued_at;
  record.kind = AuditKind::kCredential;
  record.SetActor({issued.issued_to, command.vouched_by});
  record.subject = issued.uri;
  record.text = absl::StrCat("issued certificate ", issued.issuer, ":", issued.serial);
  context.audit.Add(record);
  return RecordIssued::Result{};
}

absl::StatusOr<AppendAudit::Result> Execute(WriteContext& context, const AppendAudit& command) {
  if (command.once && context.audit.HasOfSubject(command.record)) return AppendAudit::Result{};
  if (IsRefusal(command.record.kind)) {
    context.audit.AddRefusal(command.record);
  } else {
    context.audit.AddOrCount(command.record);
  }
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

std::optional<IssuedRecord> ReadNewestIssued(Connection& db, std::string_view uri) {
  Rows rows = db.Query("SELECT " MUSTER_ISSUED_COLUMNS
                       " FROM issued WHERE uri = ? ORDER BY issued_at DESC, serial LIMIT 1",
                       uri);
  if (!rows.Next()) return std::nullopt;
  return ParseIssued(rows);
}

// With max() SQLite takes the other columns from the row of the maximum.
std::vector<IssuedRecord> ReadNewestOfEach(Connection& db, std::string_view prefix) {
  std::vector<IssuedRecord> all;
  Rows rows = db.Query(
      "SELECT uri, issuer, serial, issued_to, max(issued_at), expires_at FROM issued"
      " WHERE uri >= ? AND uri < ? GROUP BY uri ORDER BY uri",
      prefix, absl::StrCat(std::string(prefix), "\x7f"));
  while (rows.Next()) {
    all.push_back(ParseIssued(rows));
  }
  return all;
}

}  // namespace muster::sqlite
