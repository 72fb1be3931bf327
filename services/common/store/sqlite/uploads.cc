#include "services/common/store/sqlite/uploads.h"

#include <algorithm>
#include <string>
#include <utility>

#include "services/common/store/sqlite/damage.h"
#include "services/common/store/sqlite/results.h"
#include "services/common/store/sqlite/runs.h"

namespace muster::sqlite {
namespace {

using Verdict = OpenUpload::Verdict;

#define MUSTER_UPLOAD_COLUMNS                                                              \
  "id, run, plugin, node, attempt, epoch, size, sha256, media_type, file_name, is_error, " \
  "uri, node_unproven, vouched_by, signature, signer_pem, proven, opened_at, expires_at"

UploadRecord ParseUpload(Rows& rows) {
  UploadRecord upload;
  upload.id = rows.Text();
  upload.key.run = rows.Text();
  upload.key.plugin = rows.Text();
  upload.key.node = rows.Text();
  upload.attempt = rows.Int();
  upload.epoch = rows.Int();
  upload.size = rows.Int();
  upload.sha256 = rows.Text();
  upload.media_type = rows.Text();
  upload.file_name = rows.Text();
  upload.is_error = rows.Bool();
  upload.delivery = ParseDelivery(rows);
  upload.delivery.signer_pem = rows.Text();
  upload.proven = rows.Bool();
  upload.opened_at = rows.Int();
  upload.expires_at = rows.Int();
  return upload;
}

std::optional<UploadRecord> FindByKey(Connection& db, const ResultKey& key) {
  Rows rows = db.Query("SELECT " MUSTER_UPLOAD_COLUMNS
                       " FROM uploads WHERE run = ? AND plugin = ? AND node = ?",
                       key.run, key.plugin, key.node);
  if (!rows.Next()) return std::nullopt;
  return ParseUpload(rows);
}

void Insert(Connection& db, const UploadRecord& upload) {
  const Delivery& delivery = upload.delivery;
  db.Run("INSERT INTO uploads (" MUSTER_UPLOAD_COLUMNS
         ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
         upload.id, upload.key.run, upload.key.plugin, upload.key.node, upload.attempt,
         upload.epoch, upload.size, Blob{upload.sha256}, upload.media_type, upload.file_name,
         upload.is_error, delivery.uri, delivery.node_unproven, delivery.vouched_by,
         Blob{delivery.signature}, delivery.signer_pem, upload.proven, upload.opened_at,
         upload.expires_at);
}

bool SameSender(const UploadRecord& a, const UploadRecord& b) {
  return a.delivery.uri == b.delivery.uri && a.delivery.vouched_by == b.delivery.vouched_by;
}

// Continues the same transfer with a new epoch. Takes the description of the later open, because
// its sender signs that one. Keeps a size and a digest that the same sender announced earlier.
UploadRecord TakeOver(Connection& db, const UploadRecord& open, const UploadRecord& incoming) {
  UploadRecord taken = incoming;
  taken.id = open.id;
  taken.epoch = open.epoch + 1;
  taken.opened_at = open.opened_at;
  if (SameSender(open, incoming)) {
    if (taken.size < 0) taken.size = open.size;
    if (taken.sha256.empty()) taken.sha256 = open.sha256;
  }
  const Delivery& delivery = taken.delivery;
  db.Run(
      "UPDATE uploads SET epoch = ?, size = ?, sha256 = ?, media_type = ?, file_name = ?,"
      " is_error = ?, expires_at = ?, uri = ?, node_unproven = ?, vouched_by = ?, signature = ?, "
      "signer_pem = ?, proven = ? WHERE id = ?",
      taken.epoch, taken.size, Blob{taken.sha256}, taken.media_type, taken.file_name,
      taken.is_error, taken.expires_at, delivery.uri, delivery.node_unproven, delivery.vouched_by,
      Blob{delivery.signature}, delivery.signer_pem, taken.proven, taken.id);
  return taken;
}

// Returns whether another sender continued the upload of the owner without its proof, and the
// owner returns. The bytes that came between are verified only at the end, so that sender could
// spoil each attempt of the owner.
bool IsReclaimed(const UploadRecord& open, const UploadRecord& incoming, int64_t proven_attempt) {
  return incoming.proven && incoming.attempt == proven_attempt && !open.proven &&
         !SameSender(open, incoming);
}

// Returns the verdict that run, plan and result determine; kOpen if they permit the upload.
Verdict Judge(WriteContext& context, const OpenUpload& command, const RunHead& run,
              const std::optional<ResultRecord>& head) {
  if (run.state == RunState::kCancelled || run.state == RunState::kFailed) {
    return Verdict::kCancelled;
  }
  const bool genuine = head && head->outcome == Outcome::kGenuine;
  const std::string& sha256 = command.upload.sha256;
  const bool same = genuine && !head->sha256.empty() && head->sha256 == sha256;
  // Content that is already committed is not a late delivery.
  if (run.ClosedAt(command.at) && !same) return Verdict::kSealed;
  if (!head) {
    AuditRecord record;
    record.at = command.at;
    record.kind = AuditKind::kUnplanned;
    record.SetActor(RefusalActor(command.upload.delivery, command.upload.proven));
    record.key = command.upload.key;
    record.text = "not in the plan";
    context.audit.AddRefusal(record);
    return Verdict::kNotPlanned;
  }
  if (!genuine) return Verdict::kOpen;
  // Bytes that were damaged since are asked for again, but no others.
  const int64_t size = command.upload.size;
  const bool may_be_same = (same || sha256.empty()) && (size < 0 || size == head->size);
  const bool damaged = !ReadDamage(context.db, command.upload.key).empty();
  return damaged && may_be_same ? Verdict::kOpen : Verdict::kCommitted;
}

}  // namespace

absl::StatusOr<OpenUpload::Result> Execute(WriteContext& context, const OpenUpload& command) {
  Connection& db = context.db;
  const UploadRecord& incoming = command.upload;
  const auto run = FindRun(db, incoming.key.run);
  if (!run) return OpenUpload::Result{.verdict = Verdict::kRunNotFound};
  auto head = ReadHead(db, incoming.key);
  OpenUpload::Result outcome;
  outcome.verdict = Judge(context, command, *run, head);
  if (head && head->outcome == Outcome::kGenuine) outcome.committed = std::move(*head);
  if (outcome.verdict != Verdict::kOpen) return outcome;
  // The repair of a damaged result adds no bytes to its run.
  const bool repair = outcome.committed.has_value();
  if (!repair && run->IsExceededBy(incoming.size, incoming.is_error, command.max_run_bytes)) {
    outcome.verdict = Verdict::kRunFull;
    outcome.run_bytes = run->result_bytes;
    return outcome;
  }

  const auto pair = FindPair(db, incoming.key);
  if (!pair) return outcome;  // only if the database failed
  const auto open = FindByKey(db, incoming.key);
  outcome.newest_attempt = pair->attempt;
  if (open && SameSender(*open, incoming)) {
    outcome.newest_attempt = std::max(outcome.newest_attempt, open->attempt);
  }
  if (incoming.attempt < outcome.newest_attempt) {
    outcome.verdict = Verdict::kStaleAttempt;
    return outcome;
  }
  if (incoming.proven && incoming.attempt > pair->attempt) {
    SetAttempt(db, incoming.key, incoming.attempt);
  }
  if (open && open->attempt == incoming.attempt) {
    outcome.reclaimed = IsReclaimed(*open, incoming, pair->attempt);
    outcome.upload = TakeOver(db, *open, incoming);
    return outcome;
  }
  if (open) {
    outcome.abandoned = open->id;
    db.Run("DELETE FROM uploads WHERE id = ?", open->id);
  }
  outcome.created = true;
  outcome.upload = incoming;
  outcome.upload.epoch = 1;
  Insert(db, outcome.upload);
  if (run->state == RunState::kPlanned) {
    SetRunState(context, incoming.key.run, RunState::kRunning, command.at);
  }
  return outcome;
}

absl::StatusOr<AbandonUpload::Result> Execute(WriteContext& context, const AbandonUpload& command) {
  const int64_t removed = context.db.Run("DELETE FROM uploads WHERE id = ?", command.upload_id);
  return AbandonUpload::Result{.found = removed > 0};
}

std::optional<UploadRecord> ReadUpload(Connection& db, std::string_view id) {
  Rows rows = db.Query("SELECT " MUSTER_UPLOAD_COLUMNS " FROM uploads WHERE id = ?", id);
  if (!rows.Next()) return std::nullopt;
  return ParseUpload(rows);
}

std::vector<UploadRecord> ReadUploads(Connection& db, std::string_view run) {
  std::vector<UploadRecord> uploads;
  Rows rows = db.Query("SELECT " MUSTER_UPLOAD_COLUMNS
                       " FROM uploads WHERE ? = '' OR run = ? ORDER BY run, plugin, node",
                       run, run);
  while (rows.Next()) uploads.push_back(ParseUpload(rows));
  return uploads;
}

std::vector<UploadRecord> ReadExpiredUploads(Connection& db, int64_t now, int limit) {
  std::vector<UploadRecord> uploads;
  Rows rows = db.Query("SELECT " MUSTER_UPLOAD_COLUMNS
                       " FROM uploads WHERE expires_at < ? ORDER BY expires_at LIMIT ?",
                       now, limit);
  while (rows.Next()) uploads.push_back(ParseUpload(rows));
  return uploads;
}

}  // namespace muster::sqlite
