#include "services/common/store/sqlite/sqlite_store.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/store.h"
#include "services/common/store/sqlite/audit_log.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/create_database.h"
#include "services/common/store/sqlite/damage.h"
#include "services/common/store/sqlite/identities.h"
#include "services/common/store/sqlite/integrity.h"
#include "services/common/store/sqlite/nodes.h"
#include "services/common/store/sqlite/reader_pool.h"
#include "services/common/store/sqlite/results.h"
#include "services/common/store/sqlite/runs.h"
#include "services/common/store/sqlite/schema.h"
#include "services/common/store/sqlite/status_listeners.h"
#include "services/common/store/sqlite/subscribers.h"
#include "services/common/store/sqlite/uploads.h"
#include "services/common/store/sqlite/writer.h"

namespace muster {
namespace {

using sqlite::Connection;
using sqlite::ReaderPool;
using sqlite::Rows;
using sqlite::Subscribers;
using sqlite::Writer;

class Store final : public SqliteStore {
 public:
  Store(std::unique_ptr<File> lock, std::unique_ptr<Connection> db,
        std::unique_ptr<ReaderPool> readers, const SqliteStoreOptions& options, FileOps& ops,
        bool check)
      : path_(options.path),
        lock_(std::move(lock)),
        writer_(std::make_unique<Writer>(std::move(db), options, subscribers_)),
        readers_(std::move(readers)) {
    if (!check) return;
    check_ = std::make_unique<sqlite::BackgroundCheck>(
        options.path, ops, [this](const absl::Status& cause) { writer_->StopDamaged(cause); });
  }

  // Readers are closed first, because the last connection to close may checkpoint.
  ~Store() override {
    if (check_ != nullptr && !check_->passed()) writer_->KeepUnclean();
    check_.reset();
    readers_.reset();
    writer_.reset();
  }

  absl::StatusOr<std::optional<RunView>> GetRun(std::string_view run) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadRun(db, run); });
  }
  absl::StatusOr<Page<RunRecord>> ListRuns(std::string_view page_token, int limit) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadRuns(db, page_token, limit); });
  }
  absl::StatusOr<std::vector<RunView>> LiveRuns() override {
    return readers_->Run([](Connection& db) { return sqlite::ReadLiveRuns(db); });
  }
  absl::StatusOr<Page<FinishedRun>> FinishedRuns(std::string_view page_token, int limit) override {
    return readers_->Run(
        [&](Connection& db) { return sqlite::ReadFinishedRuns(db, page_token, limit); });
  }
  absl::StatusOr<FinishedTotals> CountFinishedRuns() override {
    return readers_->Run([](Connection& db) { return sqlite::CountFinishedRuns(db); });
  }
  absl::StatusOr<std::optional<RunAuthorityRecord>> GetAuthority(std::string_view run) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadAuthority(db, run); });
  }
  absl::StatusOr<std::optional<StatusListenerRecord>> GetStatusListener(
      std::string_view run) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadStatusListener(db, run); });
  }
  absl::StatusOr<bool> IsPlanned(const ResultKey& key) override {
    return readers_->Run([&](Connection& db) { return sqlite::FindPair(db, key).has_value(); });
  }
  absl::StatusOr<bool> IsNodePlanned(std::string_view run, std::string_view node) override {
    return readers_->Run([&](Connection& db) { return sqlite::HasPairOfNode(db, run, node); });
  }
  absl::StatusOr<std::optional<ResultRecord>> GetResult(const ResultKey& key) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadResult(db, key); });
  }
  absl::StatusOr<std::vector<ResultRecord>> History(const ResultKey& key) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadHistory(db, key); });
  }
  absl::StatusOr<Page<ResultRecord>> ListResults(const ResultFilter& filter,
                                                 std::string_view page_token, int limit) override {
    return readers_->Run(
        [&](Connection& db) { return sqlite::ReadResults(db, filter, page_token, limit); });
  }
  absl::StatusOr<Page<PairRecord>> ListPairs(std::string_view run, std::string_view page_token,
                                             int limit) override {
    return readers_->Run(
        [&](Connection& db) { return sqlite::ReadPairs(db, run, page_token, limit); });
  }
  absl::StatusOr<std::optional<UploadRecord>> GetUpload(std::string_view id) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadUpload(db, id); });
  }
  absl::StatusOr<std::vector<UploadRecord>> OpenUploads(std::string_view run) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadUploads(db, run); });
  }
  absl::StatusOr<std::vector<UploadRecord>> ExpiredUploads(int64_t now, int limit) override {
    return readers_->Run(
        [&](Connection& db) { return sqlite::ReadExpiredUploads(db, now, limit); });
  }
  absl::StatusOr<std::vector<RevocationRecord>> Revocations() override {
    return readers_->Run([](Connection& db) { return sqlite::ReadRevocations(db); });
  }
  absl::StatusOr<std::vector<IssuedRecord>> NewestOfEach(std::string_view prefix) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadNewestOfEach(db, prefix); });
  }
  absl::StatusOr<std::optional<IssuedRecord>> NewestIssued(std::string_view uri) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadNewestIssued(db, uri); });
  }
  absl::StatusOr<std::optional<IssuedRecord>> FindIssued(std::string_view issuer,
                                                         std::string_view serial) override {
    return readers_->Run([&](Connection& db) { return sqlite::FindIssued(db, issuer, serial); });
  }
  absl::StatusOr<std::optional<JoinTokenRecord>> GetJoinToken(std::string_view id) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadJoinToken(db, id); });
  }
  absl::StatusOr<std::vector<JoinTokenRecord>> ListJoinTokens(int limit) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadJoinTokens(db, limit); });
  }
  absl::StatusOr<std::optional<NodeRecord>> GetNode(std::string_view name) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadNode(db, name); });
  }
  absl::StatusOr<Page<NodeRecord>> ListNodes(const Labels& labels, std::string_view page_token,
                                             int limit) override {
    return readers_->Run(
        [&](Connection& db) { return sqlite::ReadNodes(db, labels, page_token, limit); });
  }
  absl::StatusOr<Page<AuditRecord>> Audit(const AuditFilter& filter, std::string_view page_token,
                                          int limit) override {
    return readers_->Run(
        [&](Connection& db) { return sqlite::ReadAudit(db, filter, page_token, limit); });
  }

  absl::StatusOr<int64_t> DamagedResults() override {
    return readers_->Run([](Connection& db) { return sqlite::CountDamaged(db); });
  }
  absl::StatusOr<Page<ResultKey>> RequestedRedeliveries(std::string_view run,
                                                        std::string_view page_token,
                                                        int limit) override {
    return readers_->Run(
        [&](Connection& db) { return sqlite::ReadRedeliveries(db, run, page_token, limit); });
  }
  absl::Status CheckState(std::atomic<bool>& stop) override {
    return sqlite::CheckTables(path_, stop);
  }
  absl::StatusOr<std::string> ScrubPosition() override {
    return readers_->Run([](Connection& db) { return sqlite::ReadScrubPosition(db); });
  }

  absl::StatusOr<std::vector<ChangeRecord>> Read(int64_t after, int limit) override {
    return readers_->Run([&](Connection& db) { return sqlite::ReadChanges(db, after, limit); });
  }
  absl::StatusOr<std::string> Identity() override {
    return readers_->Run([](Connection& db) { return sqlite::FeedIdentity(db); });
  }
  absl::StatusOr<int64_t> Last() override { return writer_->last_change(); }
  std::unique_ptr<Subscription> Subscribe(std::function<void(int64_t last)> on_change) override {
    return subscribers_.Add(std::move(on_change));
  }

  SqliteStoreStats stats() const override { return writer_->stats(); }
  void AwaitIdle() override { writer_->AwaitIdle(); }

 protected:
  void Enqueue(Command command,
               absl::AnyInvocable<void(absl::StatusOr<CommandResult>)> done) override {
    writer_->Enqueue(std::move(command), std::move(done));
  }

 private:
  const std::string path_;
  const std::unique_ptr<File> lock_;
  Subscribers subscribers_;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<ReaderPool> readers_;
  std::unique_ptr<sqlite::BackgroundCheck> check_;  // null: no check was necessary
};

absl::StatusOr<std::unique_ptr<File>> LockStore(FileOps& ops, const std::string& path) {
  auto file = ops.Open(path + ".lock", OpenMode::kReadWriteOrCreate);
  if (!file.ok()) return Annotate(file.status(), "lock the state store");
  const absl::Status locked = (*file)->Lock();
  char text[32] = {};
  if (absl::IsFailedPrecondition(locked)) {
    const auto read = (*file)->ReadAt({text, sizeof(text) - 1}, 0);
    return errors::StoreInUse(
        path, read.ok() && *read > 0 ? absl::StrCat(" (", text, ")") : std::string());
  }
  if (!locked.ok()) return locked;
  // Only for the message above.
  const std::string self = absl::StrCat("process ", getpid());
  (*file)->Truncate(0).IgnoreError();
  (*file)->WriteAt(self, 0).IgnoreError();
  return file;
}

std::string CreatedFile(const std::string& path) { return path + ".created"; }

bool WasCreated(FileOps& ops, const std::string& path) {
  return !absl::IsNotFound(ops.Stat(CreatedFile(path)).status());
}

// Creates the file of a database that never existed. A new database in place of a lost one would
// name no stored result, so a sweep would remove them all, and would have no revocation.
absl::Status CreateUnlessLost(const SqliteStoreOptions& options, FileOps& ops) {
  ASSIGN_OR_RETURN(const bool exists, sqlite::DatabaseExists(ops, options.path));
  if (exists) return absl::OkStatus();
  bool lost = WasCreated(ops, options.path);
  if (!lost && options.has_data) {
    ASSIGN_OR_RETURN(lost, options.has_data());
  }
  if (lost) return errors::StoreMissing(options.path);
  Log(LogLevel::kInfo, "a new state store is created", {{"path", options.path}});
  // Deleted runs return their space to the disk (Writer::Shrink).
  return sqlite::CreateDatabase(ops, options.path, "PRAGMA auto_vacuum = INCREMENTAL");
}

// To be called when the database has content that survives the loss of power.
absl::Status MarkCreated(FileOps& ops, const std::string& path) {
  if (WasCreated(ops, path)) return absl::OkStatus();
  return WriteFileDurably(ops, CreatedFile(path), "created\n");
}

absl::Status Configure(Connection& db, const SqliteStoreOptions& options) {
  ASSIGN_OR_RETURN(const bool wal, sqlite::UseWriteAheadLog(db));
  db.Execute(
      "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = 0;"
      "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768; PRAGMA busy_timeout = 1000;"
      "PRAGMA journal_size_limit = 67108864;");
  if (options.max_file_bytes > 0) {
    db.Execute(absl::StrCat("PRAGMA max_page_count = ", options.max_file_bytes / 4096).c_str());
  }
  RETURN_IF_ERROR(db.TakeStatus());
  if (wal) return absl::OkStatus();
  return errors::StoreNeedsLocalDisk(options.path);
}

absl::StatusOr<bool> WasStoppedCleanly(Connection& db) {
  {
    Rows tables = db.Query("SELECT 1 FROM sqlite_schema WHERE name = 'marks'");
    const bool made = tables.Next();
    if (db.failed()) return db.TakeStatus();
    if (!made) return true;
  }
  Rows rows = db.Query("SELECT value FROM marks WHERE name = 'clean'");
  const bool clean = rows.Next() && rows.Text() == "yes";
  if (db.failed()) return db.TakeStatus();
  return clean;
}

// After an unclean stop, checks the file, or returns true if it must be checked while it is served.
absl::StatusOr<bool> CheckAfterCrash(Connection& db, const SqliteStoreOptions& options,
                                     FileOps& ops) {
  const std::string& path = options.path;
  ASSIGN_OR_RETURN(const auto clean, WasStoppedCleanly(db));
  const bool suspect = sqlite::IsSuspect(ops, path);
  if (clean && !suspect) return false;
  ASSIGN_OR_RETURN(const auto info, ops.Stat(path));
  const bool later = !suspect && info.size > options.checked_at_start;
  if (!later) {
    RETURN_IF_ERROR(sqlite::CheckDatabase(db, path));
    RETURN_IF_ERROR(sqlite::SetSuspect(ops, path, false));
  }
  return later;
}

// Sets `check_later` if the database must be checked while it is served.
absl::StatusOr<std::unique_ptr<Connection>> OpenForWriting(const SqliteStoreOptions& options,
                                                           FileOps& ops, bool& check_later) {
  auto opened = Connection::Open(options.path, Connection::Access::kReadWrite);
  if (!opened.ok()) return opened.status();
  Connection& db = **opened;
  RETURN_IF_ERROR(Configure(db, options));
  ASSIGN_OR_RETURN(check_later, CheckAfterCrash(db, options, ops));
  RETURN_IF_ERROR(sqlite::SyncNames(ops, db, options.path));
  if (absl::Status current = sqlite::Migrate(db, sqlite::SchemaSteps()); !current.ok()) {
    return Annotate(current, options.path);
  }
  db.Execute("UPDATE marks SET value = 'no' WHERE name = 'clean'");
  RETURN_IF_ERROR(db.TakeStatus());
  RETURN_IF_ERROR(sqlite::EmptyLog(db, options.path));
  return opened;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> OpenSqliteStore(SqliteStoreOptions options,
                                                             FileOps& ops) {
  ASSIGN_OR_RETURN(auto lock, LockStore(ops, options.path));
  RETURN_IF_ERROR(CreateUnlessLost(options, ops));
  RETURN_IF_ERROR(sqlite::RewriteLog(ops, options.path));
  bool check_later = false;
  ASSIGN_OR_RETURN(auto db, OpenForWriting(options, ops, check_later));
  RETURN_IF_ERROR(MarkCreated(ops, options.path));
  ASSIGN_OR_RETURN(auto readers, ReaderPool::Open(options.path, std::max(1, options.readers)));
  return std::make_unique<Store>(std::move(lock), std::move(db), std::move(readers), options, ops,
                                 check_later);
}

}  // namespace muster
