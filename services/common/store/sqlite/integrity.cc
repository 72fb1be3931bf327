#include "services/common/store/sqlite/integrity.h"

#include <pthread.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"

namespace muster::sqlite {
namespace {

// Steps of SQLite's virtual machine between two checks for a stop: about a millisecond.
constexpr int kStepsBetweenLooks = 10'000;

std::string SuspectFile(const std::string& path) { return path + ".suspect"; }

absl::Status Verdict(Connection& db, const std::string& path, const char* pragma) {
  std::string verdict;
  {
    Rows rows = db.Query(pragma);
    if (rows.Next()) verdict = rows.Text();
  }
  RETURN_IF_ERROR(db.TakeStatus());
  return verdict == "ok" ? absl::OkStatus() : SqliteError(SQLITE_CORRUPT, path, verdict);
}

}  // namespace

absl::Status CheckDatabase(Connection& db, const std::string& path) {
  return Verdict(db, path, "PRAGMA quick_check(1)");
}

bool IsSuspect(const std::string& path) { return PosixFileOps().Stat(SuspectFile(path)).ok(); }

absl::Status SetSuspect(const std::string& path, bool suspect) {
  FileOps& ops = PosixFileOps();
  if (suspect) return WriteFileDurably(ops, SuspectFile(path), "damaged\n");
  const absl::Status removed = ops.Remove(SuspectFile(path));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

BackgroundCheck::BackgroundCheck(std::string path, std::function<void(const absl::Status&)> damaged)
    : path_(std::move(path)), damaged_(std::move(damaged)), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "store check");
}

BackgroundCheck::~BackgroundCheck() {
  stop_ = true;
  thread_.join();
}

void BackgroundCheck::Run() {
  const absl::Status status = Check();
  if (stop_) return;
  if (status.ok()) {
    passed_ = true;
  } else if (absl::IsDataLoss(status)) {
    SetSuspect(path_, true).IgnoreError();  // the next start finds the same damage
    damaged_(status);
  }
  // A check that could not run (a full table of files) has no result: the next start checks again,
  // since the stop does not count as clean.
}

// Checks one table at a time, so that no read transaction delays the checkpoint for longer.
absl::Status BackgroundCheck::Check() {
  ASSIGN_OR_RETURN(auto db, Connection::Open(path_, Connection::Access::kReadOnly));
  sqlite3_progress_handler(
      db->handle(), kStepsBetweenLooks,
      [](void* stop) { return static_cast<std::atomic<bool>*>(stop)->load() ? 1 : 0; }, &stop_);
  db->Execute("PRAGMA query_only = 1; PRAGMA cache_size = -4096; PRAGMA busy_timeout = 5000;");
  std::vector<std::string> tables;
  {
    Rows rows = db->Query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
    while (rows.Next()) tables.push_back(rows.Text());
  }
  RETURN_IF_ERROR(db->TakeStatus());
  std::vector<std::string> pragmas;  // prepared statements are cached by the address of their text
  pragmas.reserve(tables.size());
  for (const std::string& table : tables) {
    pragmas.push_back(absl::StrCat("PRAGMA quick_check('", table, "')"));
    RETURN_IF_ERROR(Verdict(*db, path_, pragmas.back().c_str()));
  }
  return absl::OkStatus();
}

}  // namespace muster::sqlite
