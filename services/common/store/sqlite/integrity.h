// Checks a database after an unclean stop.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_INTEGRITY_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_INTEGRITY_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// Reads every page of a database. Fails with DATA_LOSS (STORE_CORRUPT) if one is damaged.
absl::Status CheckDatabase(Connection& db, const std::string& path);

// Returns true if an earlier check found damage: the database must not be served before a check
// passes.
bool IsSuspect(const std::string& path);
absl::Status SetSuspect(const std::string& path, bool suspect);

// Checks the database table by table, on its own thread and connection, while it is in use: the
// check of a large one takes longer than a restart may take. Thread-safe.
class BackgroundCheck {
 public:
  // Calls `damaged` on the thread, once, if there is damage; the database is then marked as
  // suspect.
  BackgroundCheck(std::string path, std::function<void(const absl::Status&)> damaged);

  // Aborts a running check.
  ~BackgroundCheck();

  // Returns true if every table passed.
  bool passed() const { return passed_; }

 private:
  void Run();
  absl::Status Check();

  const std::string path_;
  const std::function<void(const absl::Status&)> damaged_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> passed_ = false;
  std::thread thread_;  // declared last: starts after all other members
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_INTEGRITY_H_
