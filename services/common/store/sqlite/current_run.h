// The run whose results are being committed.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_CURRENT_RUN_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_CURRENT_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "services/common/store/records.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// What a delivery has to know of its run.
struct RunHead {
  RunState state = RunState::kPlanned;
  int64_t deadline_at = 0;
  int64_t seal_grace = 0;
  int64_t pending = 0;
  bool fail_fast = false;

  // Ended, or past its deadline and its grace: nothing more is taken.
  bool ClosedAt(int64_t now) const {
    return IsFinal(state) || (deadline_at > 0 && now > deadline_at + seal_grace);
  }
};
std::optional<RunHead> FindRun(Connection& db, std::string_view run);

// Reads a run's row once and writes its counters once for many results of it. What was counted and
// not written is in no row: Flush before anything else reads or changes runs, and before a commit.
// Only on the writer's thread.
class CurrentRun {
 public:
  explicit CurrentRun(Connection& db) : db_(db) {}

  // The run as it is with what was counted; null if there is none. Valid until the next call.
  const RunHead* Find(std::string_view run);

  // A pair of the run that was found last went from one outcome to another; `sequence` is the
  // change that tells it.
  void Count(Outcome from, Outcome to, int64_t sequence);

  // Writes what was counted.
  void Flush();

  // Reads the row again next time; what was counted and not written never happened.
  void Forget();

 private:
  // How the counters move.
  struct Steps {
    int64_t pending = 0, genuine = 0, errors = 0, timed_out = 0;
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
