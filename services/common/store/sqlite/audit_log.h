// The audit log: writing with limits, and reading.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_AUDIT_LOG_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_AUDIT_LOG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/store/records.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/state_store.h"

namespace muster::sqlite {

// The writing part. Only for the writer's thread.
class AuditLog {
 public:
  explicit AuditLog(Connection& db) : db_(db) {}

  // Reads the number of records.
  void Load();

  void Add(const AuditRecord& record);

  // Adds the record of a refused delivery, or counts it in an earlier one: in an equal one among
  // the newest of the pair, or in the last one of an actor with kMaxRefusals.
  void AddRefusal(const AuditRecord& record);

  // Adds a record, or counts it in the actor's newest one if that is equal.
  void AddOrCount(const AuditRecord& record);

  // Returns whether the log has an equal record of the same subject.
  bool HasOfSubject(const AuditRecord& record);

  // Returns true if Prune has work.
  bool IsLong() const;

  // Removes a few of the oldest records of each kind beyond RetainedAudit. Returns true if more
  // remain.
  bool Prune(int64_t step);

 private:
  void Count(int64_t sequence, int64_t at);

  Connection& db_;
  std::array<int64_t, 32> records_{};  // by kind; more after a rollback
};

// The limit of records that one page examines, so that a filter that matches little does not occupy
// a reader.
inline constexpr int kAuditScan = 20'000;

// Reads a page; the caller holds a read transaction.
absl::StatusOr<Page<AuditRecord>> ReadAudit(Connection& db, const AuditFilter& filter,
                                            std::string_view page_token, int limit);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_AUDIT_LOG_H_
