// The change feed and the audit log, which every command writes in addition to its own rows.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_FEED_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_FEED_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/store/change_feed.h"
#include "services/common/store/records.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/current_run.h"
#include "services/common/store/state_store.h"

namespace muster::sqlite {

// The number of audit records that are kept.
inline constexpr int64_t kRetainedAudit = 1'000'000;

// The limit of audited refusals of one run; the last record states that there were more.
inline constexpr int64_t kMaxRefusals = 10'000;

// The state that a command works with. Only for the writer's thread.
class WriteContext {
 public:
  explicit WriteContext(Connection& db) : db(db), current(db) {}

  // Reads the begin and the end of the feed and of the audit log.
  void Load();

  // Numbers and writes a change, and records it for its run. Returns its sequence.
  int64_t AddChange(const ChangeRecord& change);

  // Reserves `count` sequences for changes that the caller writes; returns the preceding one.
  int64_t ReserveSequences(int64_t count);

  void AddAudit(const AuditRecord& record);

  // Writes an audit record of a refused delivery, unless one with the same pair, actor and text
  // exists or the run has kMaxRefusals.
  void AddRefusal(const AuditRecord& record);

  int64_t last_change() const { return last_change_; }
  // Resets the sequence after a rollback.
  void set_last_change(int64_t last) { last_change_ = last; }

  // Returns true if PruneFeed has work.
  bool FeedIsLong(int64_t retained) const {
    return last_change_ - first_change_ >= retained || audits_ > kRetainedAudit;
  }
  // Records a removal: the new begin of the feed, and the number of audit records.
  void SetPruned(int64_t first_change, int64_t audits) {
    first_change_ = first_change;
    audits_ = audits;
  }

  Connection& db;
  CurrentRun current;

 private:
  int64_t first_change_ = 0;  // 0: the feed is empty
  int64_t last_change_ = 0;
  int64_t audits_ = 0;  // the number of records, or more after a rollback
};

// Removes a few of the oldest changes beyond `retained`, and audit records beyond kRetainedAudit.
// Returns true if more remain.
bool PruneFeed(WriteContext& context, int64_t retained, int64_t step);

// These functions read; the caller holds a read transaction.
absl::StatusOr<std::vector<ChangeRecord>> ReadChanges(Connection& db, int64_t after, int limit);
int64_t LastChange(Connection& db);
absl::StatusOr<Page<AuditRecord>> ReadAudit(Connection& db, std::string_view run,
                                            std::string_view page_token, int limit);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_FEED_H_
