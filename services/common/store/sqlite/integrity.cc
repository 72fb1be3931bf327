#include "services/common/store/sqlite/integrity.h"

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace muster::sqlite {
namespace {

// Steps of SQLite's virtual machine between two checks for a stop: about a millisecond.
constexpr int kStepsBetweenLooks = 10'000;

constexpr size_t kPiece = 256 * 1024;  // bytes of the log that are written at a time

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

// SQLite reports a read that fails once as it reports damage, which a second check finds again.
absl::Status RepeatedVerdict(Connection& db, const std::string& path, const char* pragma) {
  const absl::Status verdict = Verdict(db, path, pragma);
  return absl::IsDataLoss(verdict) ? Verdict(db, path, pragma) : verdict;
}

}  // namespace

absl::Status RewriteLog(FileOps& ops, const std::string& path) {
  auto log = ops.Open(path + "-wal", OpenMode::kReadWrite);
  if (absl::IsNotFound(log.status())) return absl::OkStatus();
  if (!log.ok()) return log.status();
  std::string piece(kPiece, '\0');
  for (int64_t at = 0;; at += static_cast<int64_t>(kPiece)) {
    ASSIGN_OR_RETURN(const auto got, (*log)->ReadAt({piece.data(), piece.size()}, at));
    RETURN_IF_ERROR((*log)->WriteAt(std::string_view(piece).substr(0, got), at));
    if (got < piece.size()) break;
  }
  RETURN_IF_ERROR((*log)->SyncData());
  return ops.SyncFolder(ParentFolder(path));
}

absl::StatusOr<bool> UseWriteAheadLog(Connection& db) {
  bool wal = false;
  {
    Rows rows = db.Query("PRAGMA journal_mode = WAL");
    wal = rows.Next() && rows.Text() == "wal";
    rows.Next();  // only the end of the rows commits the change, and may fail
  }
  RETURN_IF_ERROR(db.TakeStatus());
  return wal;
}

absl::Status SyncNames(FileOps& ops, Connection& db, const std::string& path) {
  db.Execute("SELECT 1 FROM sqlite_schema LIMIT 1");  // SQLite creates the log at the first read
  RETURN_IF_ERROR(db.TakeStatus());
  return ops.SyncFolder(ParentFolder(path));
}

absl::Status EmptyLog(Connection& db, const std::string& path) {
  const int code =
      sqlite3_wal_checkpoint_v2(db.handle(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (code == SQLITE_OK) return absl::OkStatus();
  if ((code & 0xff) != SQLITE_BUSY) return SqliteError(code, path, "recover the log");
  Log(LogLevel::kInfo, "another process reads the database: a later checkpoint completes its log",
      {{"path", path}});
  return absl::OkStatus();
}

absl::Status CheckDatabase(Connection& db, const std::string& path) {
  return RepeatedVerdict(db, path, "PRAGMA quick_check(1)");
}

bool IsSuspect(FileOps& ops, const std::string& path) { return ops.Stat(SuspectFile(path)).ok(); }

absl::Status SetSuspect(FileOps& ops, const std::string& path, bool suspect) {
  if (suspect) return WriteFileDurably(ops, SuspectFile(path), "damaged\n");
  const absl::Status removed = ops.Remove(SuspectFile(path));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::Status CheckTables(const std::string& path, std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(auto db, Connection::Open(path, Connection::Access::kReadOnly));
  sqlite3_progress_handler(
      db->handle(), kStepsBetweenLooks,
      [](void* flag) { return static_cast<std::atomic<bool>*>(flag)->load() ? 1 : 0; }, &stop);
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
    const absl::Status verdict = RepeatedVerdict(*db, path, pragmas.back().c_str());
    if (stop) return absl::CancelledError("the check was stopped");
    RETURN_IF_ERROR(verdict);
  }
  return absl::OkStatus();
}

BackgroundCheck::BackgroundCheck(std::string path, FileOps& ops,
                                 std::function<void(const absl::Status&)> damaged)
    : path_(std::move(path)), ops_(ops), damaged_(std::move(damaged)), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "store check");
}

BackgroundCheck::~BackgroundCheck() {
  stop_ = true;
  thread_.join();
}

void BackgroundCheck::Run() {
  const absl::Status status = CheckTables(path_, stop_);
  if (stop_) return;
  if (status.ok()) {
    passed_ = true;
  } else if (absl::IsDataLoss(status)) {
    SetSuspect(ops_, path_, true).IgnoreError();  // the next start finds the same damage
    damaged_(status);
  }
  // A check that could not run (a full table of files) has no result: the next start checks again,
  // since the stop does not count as clean.
}

}  // namespace muster::sqlite
