#include "services/common/store/sqlite/local_database.h"

#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/store.h"
#include "services/common/store/sqlite/create_database.h"
#include "services/common/store/sqlite/integrity.h"
#include "services/common/store/sqlite/schema.h"
#include "services/common/store/sqlite/space.h"

namespace muster::sqlite {
namespace {

// SQLite removes the log when the last connection closes: a log is left by a crash only.
bool HasLog(FileOps& ops, const std::string& path) {
  const auto log = ops.Stat(path + "-wal");
  return log.ok() && log->size > 0;
}

absl::Status Configure(Connection& db, const std::string& path) {
  ASSIGN_OR_RETURN(const bool wal, UseWriteAheadLog(db));
  db.Execute(
      "PRAGMA synchronous = FULL; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
      "PRAGMA cache_size = -8192; PRAGMA busy_timeout = 1000;"
      "PRAGMA journal_size_limit = 16777216;");
  RETURN_IF_ERROR(db.TakeStatus());
  return wal ? absl::OkStatus() : errors::StoreNeedsLocalDisk(path);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalDatabase>> LocalDatabase::Open(
    const std::string& path, std::span<const char* const> steps, OnFatal on_fatal, FileOps& ops) {
  RETURN_IF_ERROR(MakeFolders(ops, ParentFolder(path)));
  ASSIGN_OR_RETURN(const bool exists, DatabaseExists(ops, path));
  if (!exists) {
    RETURN_IF_ERROR(CreateDatabase(ops, path));
  }
  const bool crashed = HasLog(ops, path);
  RETURN_IF_ERROR(RewriteLog(ops, path));
  ASSIGN_OR_RETURN(auto writer, Connection::Open(path, Connection::Access::kReadWrite));
  RETURN_IF_ERROR(Configure(*writer, path));
  if (crashed) {
    RETURN_IF_ERROR(CheckDatabase(*writer, path));
  }
  RETURN_IF_ERROR(SyncNames(ops, *writer, path));
  if (const absl::Status s = Migrate(*writer, steps); !s.ok()) return Annotate(s, path);
  RETURN_IF_ERROR(EmptyLog(*writer, path));
  ASSIGN_OR_RETURN(auto reader, Connection::Open(path, Connection::Access::kReadOnly));
  return std::unique_ptr<LocalDatabase>(
      new LocalDatabase(path, std::move(on_fatal), std::move(writer), std::move(reader)));
}

LocalDatabase::LocalDatabase(std::string path, OnFatal on_fatal, std::unique_ptr<Connection> writer,
                             std::unique_ptr<Connection> reader)
    : path_(std::move(path)),
      on_fatal_(std::move(on_fatal)),
      writer_(std::move(writer)),
      reader_(std::move(reader)) {}

LocalDatabase::~LocalDatabase() = default;

absl::Status LocalDatabase::Write(Change change) {
  Writer self{change, absl::OkStatus()};
  std::vector<Writer*> group;
  {
    MutexLock lock(mutex_);
    queue_.push_back(&self);
    while (committing_ && !self.done) committed_.Wait(mutex_);
    if (self.done) return self.status;
    committing_ = true;
    group.swap(queue_);
    if (!fatal_.ok()) self.status = fatal_;
  }
  if (self.status.ok()) {
    Commit(group);
    TruncateLargeLog();
  } else {
    for (Writer* writer : group) writer->status = self.status;
  }
  MutexLock lock(mutex_);
  committing_ = false;
  for (Writer* writer : group) writer->done = true;
  committed_.NotifyAll();
  return self.status;
}

size_t LocalDatabase::waiting() const {
  MutexLock lock(mutex_);
  return queue_.size();
}

// If a reader needs the log now, a later commit truncates it.
void LocalDatabase::TruncateLargeLog() {
  if (LogBytes(*writer_) <= kLargeLog) return;
  {
    MutexLock lock(mutex_);
    if (!fatal_.ok()) return;
  }
  const int code = TruncateLog(*writer_);
  if (IsFatal(code)) Stop(SqliteError(code, path_, "truncate the log")).IgnoreError();
}

// A change that fails must not fail the others: after a failure each gets its own transaction.
void LocalDatabase::Commit(const std::vector<Writer*>& group) {
  const absl::Status together = TryTogether(group);
  for (Writer* writer : group) writer->status = together;
  if (together.ok() || group.size() == 1) return;
  for (Writer* writer : group) writer->status = TryTogether({writer});
}

absl::Status LocalDatabase::TryTogether(const std::vector<Writer*>& group) {
  {
    MutexLock lock(mutex_);
    if (!fatal_.ok()) return fatal_;
  }
  writer_->Execute("BEGIN IMMEDIATE");
  absl::Status status;
  for (auto it = group.begin(); it != group.end() && status.ok() && !writer_->failed(); ++it) {
    status = (*it)->change(*writer_);
  }
  if (status.ok()) writer_->Execute("COMMIT");
  if (status.ok() && !writer_->failed()) return absl::OkStatus();
  if (writer_->failed()) status = Failure();
  if (writer_->in_transaction()) writer_->Execute("ROLLBACK");
  writer_->TakeStatus().IgnoreError();
  return status;
}

absl::Status LocalDatabase::Failure() {
  const int code = writer_->code();
  const absl::Status failure = writer_->TakeStatus();
  return IsFatal(code) ? Stop(failure) : failure;
}

absl::Status LocalDatabase::Stop(const absl::Status& failure) {
  Log(LogLevel::kError, "a database stops after a failure of the disk",
      {{"path", path_}, {"error", failure}});
  // SQLite would write the log back at the close and trust a sync that follows a failed one.
  sqlite3_db_config(writer_->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  const absl::Status fatal = errors::StoreFailed(ToStd(failure.message()));
  {
    MutexLock lock(mutex_);
    fatal_ = fatal;
  }
  if (on_fatal_) on_fatal_(Annotate(fatal, path_));
  return fatal;
}

absl::Status LocalDatabase::Read(absl::FunctionRef<absl::Status(Connection& db)> query) {
  MutexLock lock(reader_mutex_);
  const absl::Status status = query(*reader_);
  const absl::Status failure = reader_->TakeStatus();
  return failure.ok() ? status : failure;
}

}  // namespace muster::sqlite
