#include "services/jobs/audit_outbox.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/deployment_rows.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

constexpr size_t kMaxDetail = 1'024;
constexpr size_t kRemovedAtOnce = 100;  // by one change, with less than 200 KiB

// Returns true if there may be more records than the limit. Does not count them.
bool MayBeFull(Connection& db) {
  Rows rows = db.Query(
      "SELECT (SELECT max(id) FROM audit_outbox) - (SELECT min(id) FROM audit_outbox) + 1");
  return rows.Next() && rows.Int() > kMaxOutbox;
}

// Reads the oldest records, at most `limit`.
std::vector<AuditOutbox::Record> ReadOldest(Connection& db, int64_t limit) {
  std::vector<AuditOutbox::Record> records;
  Rows rows = db.Query("SELECT id, message FROM audit_outbox ORDER BY id LIMIT ?", limit);
  while (rows.Next()) {
    AuditOutbox::Record& record = records.emplace_back();
    record.id = rows.Int();
    record.request = Parsed<v1::RecordServiceChangeRequest>(rows.Text());
  }
  return records;
}

int64_t CountRecords(Connection& db) {
  Rows rows = db.Query("SELECT count(*) FROM audit_outbox");
  return rows.Next() ? rows.Int() : 0;
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
  db.Run("INSERT INTO audit_outbox (message) VALUES (?)", Blob{Serialised(request)});
}

absl::StatusOr<std::vector<AuditOutbox::Record>> AuditOutbox::List(size_t limit) {
  std::vector<Record> records;
  bool is_full = false;
  const auto read = [&](Connection& db) {
    is_full = MayBeFull(db) && CountRecords(db) > kMaxOutbox;
    records = ReadOldest(db, static_cast<int64_t>(limit));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(database_.Read(read));
  if (!is_full) return records;
  RETURN_IF_ERROR(RemoveExcess());
  RETURN_IF_ERROR(database_.Read(read));
  return records;
}

// A change may be undone, or run twice, so it logs nothing.
absl::Status AuditOutbox::RemoveExcess() {
  for (bool more = true; more;) {
    std::vector<Record> removed;
    RETURN_IF_ERROR(database_.Write([&](Connection& db) {
      const int64_t excess = CountRecords(db) - kMaxOutbox;
      removed = ReadOldest(db, std::clamp<int64_t>(excess, 0, kRemovedAtOnce));
      if (!removed.empty()) db.Run("DELETE FROM audit_outbox WHERE id <= ?", removed.back().id);
      return absl::OkStatus();
    }));
    for (const Record& record : removed) {
      LogLostAuditRecord(record.request, "too many records wait for the aggregator");
    }
    more = removed.size() == kRemovedAtOnce;
  }
  return absl::OkStatus();
}

absl::Status AuditOutbox::Remove(const Record& record) {
  return database_.Write([&](Connection& db) {
    db.Run("DELETE FROM audit_outbox WHERE id = ?", record.id);
    return absl::OkStatus();
  });
}

absl::StatusOr<int64_t> AuditOutbox::Count() {
  int64_t count = 0;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    count = CountRecords(db);
    return absl::OkStatus();
  }));
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
