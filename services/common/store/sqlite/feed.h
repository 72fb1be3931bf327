// The change feed and the audit log: what every command writes beside its own rows.
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

// The newest this many audit records are kept.
inline constexpr int64_t kRetainedAudit = 1'000'000;

// Refused deliveries that are audited for one run; the last one says that there were more.
inline constexpr int64_t kMaxRefusals = 10'000;

// What a command works with. Only on the writer's thread.
class WriteContext {
 public:
  explicit WriteContext(Connection& db) : db(db), current(db) {}

  // Reads where the feed and the audit log begin and end.
  void Load();

  // Numbers a change, writes it, and notes it on its run. Returns its sequence.
  int64_t AddChange(const ChangeRecord& change);

  // Takes `count` sequences for changes that the caller writes by itself; returns the one before.
  int64_t TakeSequences(int64_t count);

  void AddAudit(const AuditRecord& record);

  // An audit record of a refused delivery: not again for the same pair, actor and text, and at most
  // kMaxRefusals of a run.
  void AddRefusal(const AuditRecord& record);

  int64_t last_change() const { return last_change_; }
  // After a rollback.
  void set_last_change(int64_t last) { last_change_ = last; }

  // Whether there is something for PruneFeed to do.
  bool FeedIsLong(int64_t retained) const {
    return last_change_ - first_change_ >= retained || audits_ > kRetainedAudit;
  }
  // After a removal: where the feed begins now, and how many audit records there are.
  void NotePruned(int64_t first_change, int64_t audits) {
    first_change_ = first_change;
    audits_ = audits;
  }

  Connection& db;
  CurrentRun current;

 private:
  int64_t first_change_ = 0;  // 0: before the first one
  int64_t last_change_ = 0;
  int64_t audits_ = 0;  // records there are, or more after a rollback
};

// Removes a few of the oldest changes beyond `retained`, and audit records beyond kRetainedAudit.
// True if there is more to remove.
bool PruneFeed(WriteContext& context, int64_t retained, int64_t step);

// Reads; the caller holds a read transaction.
absl::StatusOr<std::vector<ChangeRecord>> ReadChanges(Connection& db, int64_t after, int limit);
int64_t LastChange(Connection& db);
absl::StatusOr<Page<AuditRecord>> ReadAudit(Connection& db, std::string_view run,
                                            std::string_view page_token, int limit);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_FEED_H_
