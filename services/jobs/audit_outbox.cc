#include "services/jobs/audit_outbox.h"

#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/utf8.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/deployment_rows.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

constexpr size_t kMaxDetail = 1'024;

// Returns true if there may be as many records as the limit. Does not count them.
bool MayBeFull(Connection& db) {
  Rows rows = db.Query(
      "SELECT (SELECT max(id) FROM audit_outbox) - (SELECT min(id) FROM audit_outbox) + 1");
  return rows.Next() && rows.Int() >= kMaxOutbox;
}

// Removes the oldest record beyond the limit.
void RemoveExcess(Connection& db) {
  if (!MayBeFull(db)) return;
  int64_t oldest = 0;
  v1::RecordServiceChangeRequest request;
  {
    Rows rows = db.Query(
        "SELECT id, message FROM audit_outbox WHERE "
        "(SELECT count(*) FROM audit_outbox) >= ? ORDER BY id LIMIT 1",
        kMaxOutbox);
    if (!rows.Next()) return;
    oldest = rows.Int();
    request = Parsed<v1::RecordServiceChangeRequest>(rows.Text());
  }
  LogLostAuditRecord(request, "too many records wait for the aggregator");
  db.Run("DELETE FROM audit_outbox WHERE id = ?", oldest);
}

}  // namespace

void AddAuditRecord(Connection& db, v1::AuditKind kind, const ChangeOrigin& origin,
                    const std::string& subject, const std::string& event, const std::string& detail,
                    absl::Time time) {
  v1::RecordServiceChangeRequest request;
  request.set_kind(kind);
  request.set_actor(origin.actor);
  request.set_vouched_by(origin.vouched_by);
  request.set_subject(subject);
  request.set_event(event);
  request.set_detail(std::string(CutUtf8(detail, kMaxDetail)));
  ToProto(time, request.mutable_time());
  RemoveExcess(db);
  db.Run("INSERT INTO audit_outbox (message) VALUES (?)", Blob{Serialised(request)});
}

absl::StatusOr<std::vector<AuditOutbox::Record>> AuditOutbox::List(size_t limit) {
  std::vector<Record> records;
  const absl::Status status = database_.Read([&](Connection& db) {
    Rows rows = db.Query("SELECT id, message FROM audit_outbox ORDER BY id LIMIT ?", limit);
    while (rows.Next()) {
      Record& record = records.emplace_back();
      record.id = rows.Int();
      record.request = Parsed<v1::RecordServiceChangeRequest>(rows.Text());
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return records;
}

absl::Status AuditOutbox::Remove(const Record& record) {
  return database_.Write([&](Connection& db) {
    db.Run("DELETE FROM audit_outbox WHERE id = ?", record.id);
    return absl::OkStatus();
  });
}

absl::StatusOr<int64_t> AuditOutbox::Count() {
  int64_t count = 0;
  const absl::Status status = database_.Read([&](Connection& db) {
    Rows rows = db.Query("SELECT count(*) FROM audit_outbox");
    if (rows.Next()) count = rows.Int();
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return count;
}

void LogLostAuditRecord(const v1::RecordServiceChangeRequest& request, const std::string& why) {
  Log(LogLevel::kWarning, "the audit log lacks a record of a change",
      {{"subject", request.subject()},
       {"by", request.actor()},
       {"event", request.event()},
       {"detail", request.detail()},
       {"error", why}});
}

}  // namespace muster
