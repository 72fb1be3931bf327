// A cache of the run whose results are being committed.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_CURRENT_RUN_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_CURRENT_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "services/common/store/records.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// The values of a run that a delivery needs.
struct RunHead {
  RunState state = RunState::kPlanned;
  int64_t deadline_at = 0;
  int64_t seal_grace = 0;
  int64_t pending = 0;
  bool fail_fast = false;
  int64_t result_bytes = 0;

  // Returns true if the run has ended, or if its deadline and grace have passed.
  bool ClosedAt(int64_t now) const {
    return IsFinal(state) || (deadline_at > 0 && now > deadline_at + seal_grace);
  }

  // Returns true if a result of `size` bytes would exceed `max_bytes` (0: no limit). Small errors
  // never do, because each pair has to get an outcome.
  bool IsExceededBy(int64_t size, bool is_error, int64_t max_bytes) const {
    return max_bytes > 0 && !(is_error && size <= kInlineLimit) && size > max_bytes - result_bytes;
  }
};
std::optional<RunHead> FindRun(Connection& db, std::string_view run);

// Reads a run's row once and writes its counters once for many of its results. Counts that are not
// written yet are in no row: call Flush before a commit and before other code reads or changes
// runs. Only for the writer's thread.
class CurrentRun {
 public:
  explicit CurrentRun(Connection& db) : db_(db) {}

  // Returns the run including unwritten counts; null if it does not exist. Valid until the next
  // call.
  const RunHead* Find(std::string_view run);

  // Counts a pair of the run that was found last, which changed from one outcome to another with a
  // result of `bytes`; `sequence` is its change in the feed.
  void Count(Outcome from, Outcome to, int64_t bytes, int64_t sequence);

  // Writes the counts.
  void Flush();

  // Discards the cache and unwritten counts.
  void Forget();

 private:
  // Changes of the counters.
  struct Steps {
    int64_t pending = 0, genuine = 0, errors = 0, timed_out = 0, bytes = 0;
    int64_t& Of(Outcome outcome);
  };

  Connection& db_;
  std::string run_;
  std::optional<RunHead> head_;
  Steps steps_;
  int64_t sequence_ = 0;  // 0: nothing was counted
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_CURRENT_RUN_H_
