// Whether a database is sound after a stop that was not clean.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_INTEGRITY_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_INTEGRITY_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// Reads every page of a database; DATA_LOSS (STORE_CORRUPT) if one is damaged.
absl::Status CheckDatabase(Connection& db, const std::string& path);

// Whether an earlier check found damage: nothing may be served before another one finds none.
bool IsSuspect(const std::string& path);
absl::Status SetSuspect(const std::string& path, bool suspect);

// The same check table by table, on a thread and a connection of its own, while the database is
// used: reading a large one takes longer than a restart may. Thread-safe.
class BackgroundCheck {
 public:
  // Calls `damaged` on the thread, once, if there is damage; the database is suspect then.
  BackgroundCheck(std::string path, std::function<void(const absl::Status&)> damaged);

  // Breaks the check off if it has not ended.
  ~BackgroundCheck();

  // Every table was found sound.
  bool passed() const { return passed_; }

 private:
  void Run();
  absl::Status Check();

  const std::string path_;
  const std::function<void(const absl::Status&)> damaged_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> passed_ = false;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_INTEGRITY_H_
