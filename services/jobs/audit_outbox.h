// The audit records that the aggregator does not have yet.
#ifndef MUSTER_SERVICES_JOBS_AUDIT_OUTBOX_H_
#define MUSTER_SERVICES_JOBS_AUDIT_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/audit.pb.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/local_database.h"

namespace muster {

// The records that are kept while there is no aggregator. AuditOutbox::List removes the oldest ones
// beyond them, and logs their content.
inline constexpr int64_t kMaxOutbox = 20'000;

// The caller that makes a change.
struct ChangeOrigin {
  std::string actor;  // URI of an operator or a gateway
  // URI of the gateway that forwarded the call of the actor; empty: none.
  std::string vouched_by = {};
};

// Adds a record to the transaction of the change that it is about. `subject` and `event` as in
// audit.proto: "prod/db", "stored". `detail`: the end of the text, "version 1"; at most 1 KiB of it
// is kept.
void AddAuditRecord(sqlite::Connection& db, v1::AuditKind kind, const ChangeOrigin& origin,
                    const std::string& subject, const std::string& event, const std::string& detail,
                    absl::Time time);

// Thread-safe; calls wait for the disk.
class AuditOutbox {
 public:
  struct Record {
    int64_t id = 0;  // of its row
    v1::RecordServiceChangeRequest request;

    size_t ByteSizeLong() const { return request.ByteSizeLong(); }
  };

  // `database` with the schema of jobs_schema.h outlives this object.
  explicit AuditOutbox(sqlite::LocalDatabase& database) : database_(database) {}

  // Returns the oldest records, in their order. Removes those beyond kMaxOutbox before.
  absl::StatusOr<std::vector<Record>> List(size_t limit);

  // The aggregator has the record.
  absl::Status Remove(const Record& record);

  // Returns how many records wait.
  absl::StatusOr<int64_t> Count();

 private:
  absl::Status RemoveExcess();

  sqlite::LocalDatabase& database_;
};

// Logs the content of a record that the audit log will never have.
void LogLostAuditRecord(const v1::RecordServiceChangeRequest& request, const std::string& why);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_AUDIT_OUTBOX_H_
