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
#include "services/common/store/sqlite/audit_log.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/current_run.h"
#include "services/common/store/state_store.h"

namespace muster::sqlite {

// The state that a command works with. Only for the writer's thread.
class WriteContext {
 public:
  explicit WriteContext(Connection& db) : db(db), current(db), audit(db) {}

  // Reads the begin and the end of the feed, and the size of the audit log.
  void Load();

  // Numbers and writes a change, and records it for its run. Returns its sequence.
  int64_t AddChange(const ChangeRecord& change);

  // Reserves `count` sequences for changes that the caller writes; returns the preceding one.
  int64_t ReserveSequences(int64_t count);

  int64_t last_change() const { return last_change_; }
  // Resets the sequence after a rollback.
  void set_last_change(int64_t last) { last_change_ = last; }

  // Returns true if PruneFeed has work.
  bool FeedIsLong(int64_t retained) const {
    return last_change_ - first_change_ >= retained || audit.IsLong();
  }
  // Records a removal: the new begin of the feed.
  void set_first_change(int64_t first_change) { first_change_ = first_change; }

  Connection& db;
  CurrentRun current;
  AuditLog audit;

 private:
  int64_t first_change_ = 0;  // 0: the feed is empty
  int64_t last_change_ = 0;
};

// Removes a few of the oldest changes beyond `retained`, and of the oldest audit records. Returns
// true if more remain.
bool PruneFeed(WriteContext& context, int64_t retained, int64_t step);

// These functions read; the caller holds a read transaction.
absl::StatusOr<std::vector<ChangeRecord>> ReadChanges(Connection& db, int64_t after, int limit);
int64_t LastChange(Connection& db);
std::string FeedIdentity(Connection& db);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_FEED_H_
