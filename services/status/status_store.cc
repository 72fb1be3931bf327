#include "services/status/status_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/message_text.h"
#include "services/common/store/sqlite/schema.h"
#include "services/common/store/sqlite/space.h"
#include "services/status/status_schema.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

constexpr size_t kMaxWaiting = 100'000;
constexpr absl::Duration kBatchDelay = absl::Seconds(1);
constexpr absl::Duration kEventRetention = absl::Hours(24 * 30);
constexpr absl::Duration kRemovePeriod = absl::Hours(1);

constexpr int64_t kRemoveStep = 200;  // rows of one transaction
constexpr char kShrink[] = "PRAGMA incremental_vacuum(2048)";

int64_t Micros(const google::protobuf::Timestamp& time) {
  return time.seconds() * 1'000'000 + time.nanos() / 1000;
}

absl::StatusOr<std::unique_ptr<Connection>> OpenWriter(const std::string& path) {
  auto opened = Connection::Open(path, Connection::Access::kReadWrite);
  if (!opened.ok()) return opened.status();
  Connection& db = **opened;
  // NORMAL: a loss of power may lose the newest, no more.
  // Only in a new database: removed runs return their space to the disk (ReturnSpace).
  db.Execute(
      "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
      "PRAGMA mmap_size = 0;"
      "PRAGMA busy_timeout = 1000; PRAGMA journal_size_limit = 16777216;");
  RETURN_IF_ERROR(db.TakeStatus());
  RETURN_IF_ERROR(sqlite::Migrate(db, kStatusSchema));
  return opened;
}

}  // namespace

bool StatusStore::Batch::empty() const {
  return events.empty() && senders.empty() && contacts.empty() && progress.empty() && gone.empty();
}

absl::StatusOr<std::unique_ptr<StatusStore>> StatusStore::Open(const std::string& folder,
                                                               const Clock& clock,
                                                               Metrics& metrics) {
  const std::string path = folder + "/status.db";
  ASSIGN_OR_RETURN(auto writer, OpenWriter(path));
  ASSIGN_OR_RETURN(auto reader, Connection::Open(path, Connection::Access::kReadOnly));
  return std::unique_ptr<StatusStore>(
      new StatusStore(std::move(writer), std::move(reader), clock, metrics));
}

StatusStore::StatusStore(std::unique_ptr<Connection> writer, std::unique_ptr<Connection> reader,
                         const Clock& clock, Metrics& metrics)
    : clock_(clock),
      dropped_(metrics.AddCounter("muster_status_records_dropped_total",
                                  "Records dropped because the queue was full.")),
      failed_(metrics.AddCounter("muster_status_store_failures_total",
                                 "Batches that could not be written to the status store.")),
      writer_(std::move(writer)),
      reader_(std::move(reader)),
      removed_at_(absl::InfinitePast()),
      thread_([this] { Work(); }) {}

StatusStore::~StatusStore() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

absl::StatusOr<std::vector<SenderRecord>> StatusStore::LoadSenders() {
  std::vector<SenderRecord> senders;
  MutexLock lock(reader_mutex_);
  {
    Rows rows = reader_->Query(
        "SELECT uri, node, presence, presence_since, last_seen, instance, boot, evidence "
        "FROM senders");
    while (rows.Next()) {
      SenderRecord& record = senders.emplace_back();
      record.uri = rows.Text();
      record.node = rows.Text();
      record.presence = rows.Enum<v1::Presence>();
      record.presence_since = absl::FromUnixMicros(rows.Int());
      record.last_seen = absl::FromUnixMicros(rows.Int());
      record.instance = static_cast<uint64_t>(rows.Int());
      record.boot = static_cast<uint64_t>(rows.Int());
      record.evidence = rows.Enum<Evidence>();
    }
  }
  RETURN_IF_ERROR(reader_->TakeStatus());
  return senders;
}

absl::StatusOr<StatusStore::Pairs> StatusStore::LoadPairs(const std::string& run) {
  Pairs pairs;
  const auto read_key = [&run](Rows& rows, v1::ResultKey* key) {
    key->set_run(run);
    key->set_plugin(rows.Text());
    key->set_node(rows.Text());
  };
  MutexLock lock(reader_mutex_);
  {
    Rows rows = reader_->Query("SELECT plugin, node, uri, first FROM contacts WHERE run = ?", run);
    while (rows.Next()) {
      ContactRecord& record = pairs.contacts.emplace_back();
      read_key(rows, &record.key);
      record.uri = rows.Text();
      record.first = absl::FromUnixMicros(rows.Int());
    }
  }
  {
    Rows rows = reader_->Query("SELECT plugin, node, message FROM progress WHERE run = ?", run);
    while (rows.Next()) {
      auto& [key, progress] = pairs.progress.emplace_back();
      read_key(rows, &key);
      if (!ParseCleaned(rows.Text(), &progress)) pairs.progress.pop_back();
    }
  }
  RETURN_IF_ERROR(reader_->TakeStatus());
  return pairs;
}

template <typename T>
void StatusStore::Queue(std::vector<T> Batch::* list, T record) {
  MutexLock lock(mutex_);
  if ((waiting_.*list).size() >= kMaxWaiting) return dropped_.Add();
  (waiting_.*list).push_back(std::move(record));
}

void StatusStore::AddEvent(const std::string& node, v1::NodeEvent event) {
  Queue(&Batch::events, std::pair(node, std::move(event)));
}

size_t StatusStore::PutSenders(std::vector<SenderRecord> senders) {
  MutexLock lock(mutex_);
  const size_t taken = std::min(senders.size(), kMaxWaiting - waiting_.senders.size());
  const auto end = senders.begin() + static_cast<ptrdiff_t>(taken);
  waiting_.senders.insert(waiting_.senders.end(), std::make_move_iterator(senders.begin()),
                          std::make_move_iterator(end));
  return taken;
}

void StatusStore::PutContact(ContactRecord contact) { Queue(&Batch::contacts, std::move(contact)); }

void StatusStore::ForgetRun(const std::string& run) { Queue(&Batch::gone, run); }

void StatusStore::ForgetRunsExcept(const std::set<std::string>& runs) {
  MutexLock lock(reader_mutex_);
  for (const char* next : {"SELECT min(run) FROM contacts WHERE run > ?",
                           "SELECT min(run) FROM progress WHERE run > ?"}) {
    // Steps from run to run: a run may have very many rows.
    for (std::string run;;) {
      Rows rows = reader_->Query(next, run);
      if (!rows.Next()) break;
      run = rows.Text();
      if (run.empty()) break;
      if (!runs.contains(run)) ForgetRun(run);
    }
  }
  const absl::Status status = reader_->TakeStatus();
  if (!status.ok()) Log(LogLevel::kError, "cannot find removed runs", {{"error", status}});
}

void StatusStore::PutProgress(const v1::ResultKey& key, v1::Progress progress) {
  MutexLock lock(mutex_);
  if (waiting_.progress.size() >= kMaxWaiting) return dropped_.Add();
  waiting_.progress[{key.run(), key.plugin(), key.node()}] = std::move(progress);
}

absl::StatusOr<std::vector<v1::NodeEvent>> StatusStore::Events(const std::string& node) {
  std::vector<v1::NodeEvent> events;
  MutexLock lock(reader_mutex_);
  {
    Rows rows = reader_->Query(
        "SELECT at, presence, reason, run, plugin, detail FROM node_events WHERE node = ? "
        "ORDER BY id DESC LIMIT 200",
        node);
    while (rows.Next()) {
      v1::NodeEvent& event = events.emplace_back();
      const int64_t micros = rows.Int();
      event.mutable_time()->set_seconds(micros / 1'000'000);
      event.mutable_time()->set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
      event.set_presence(rows.Enum<v1::Presence>());
      event.set_reason(rows.Enum<v1::Reason>());
      event.set_run(rows.Text());
      event.set_plugin(rows.Text());
      event.set_detail(rows.Text());
    }
  }
  RETURN_IF_ERROR(reader_->TakeStatus());
  return events;
}

void StatusStore::Flush() {
  MutexLock lock(mutex_);
  flush_ = true;
  wake_.NotifyAll();
  while (!waiting_.empty() || writing_) written_.Wait(mutex_);
}

void StatusStore::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    if (gone_.empty()) {
      wake_.WaitFor(mutex_, kBatchDelay,
                    [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || flush_; });
    }
    flush_ = false;
    const bool last = stopping_;
    const Batch batch = std::exchange(waiting_, {});
    writing_ = true;
    lock.Unlock();
    if (!batch.empty()) Write(batch);
    gone_.insert(gone_.end(), batch.gone.begin(), batch.gone.end());
    RemoveRuns();
    if (clock_.Now() - removed_at_ >= kRemovePeriod) RemoveOld();
    ReturnSpace();
    lock.Lock();
    writing_ = !gone_.empty() && !last;
    written_.NotifyAll();
    if (last) return;
  }
}

void StatusStore::Write(const Batch& batch) {
  Connection& db = *writer_;
  db.Execute("BEGIN IMMEDIATE");
  WriteEvents(batch);
  for (const SenderRecord& sender : batch.senders) {
    db.Run("INSERT OR REPLACE INTO senders VALUES (?, ?, ?, ?, ?, ?, ?, ?)", sender.uri,
           sender.node, sender.presence, absl::ToUnixMicros(sender.presence_since),
           absl::ToUnixMicros(sender.last_seen), sender.instance, sender.boot, sender.evidence);
  }
  WritePairs(batch);
  db.Execute("COMMIT");
  if (!db.failed()) return;
  HandleFailure("cannot store senders and nodes");
}

void StatusStore::HandleFailure(const char* what) {
  const absl::Status failure = writer_->TakeStatus();
  if (failure.ok()) return;
  if (writer_->in_transaction()) writer_->Execute("ROLLBACK");
  writer_->TakeStatus().IgnoreError();
  failed_.Add();
  Log(LogLevel::kError, what, {{"error", failure}});
}

void StatusStore::WriteEvents(const Batch& batch) {
  Connection& db = *writer_;
  std::set<std::string> nodes;
  for (const auto& [node, event] : batch.events) {
    db.Run(
        "INSERT INTO node_events (node, at, presence, reason, run, plugin, detail) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        node, Micros(event.time()), event.presence(), event.reason(), event.run(), event.plugin(),
        event.detail());
    nodes.insert(node);
  }
  for (const std::string& node : nodes) {
    db.Run(
        "DELETE FROM node_events WHERE node = ?1 AND id <= (SELECT id FROM node_events "
        "WHERE node = ?1 ORDER BY id DESC LIMIT 1 OFFSET 200)",
        node);
  }
}

void StatusStore::WritePairs(const Batch& batch) {
  Connection& db = *writer_;
  for (const ContactRecord& contact : batch.contacts) {
    // The pair may have another sender by now; the time of the first heartbeat stays.
    db.Run(
        "INSERT INTO contacts VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET uri = excluded.uri",
        contact.key.run(), contact.key.plugin(), contact.key.node(), contact.uri,
        absl::ToUnixMicros(contact.first));
  }
  std::string bytes;
  for (const auto& [key, progress] : batch.progress) {
    progress.SerializeToString(&bytes);
    db.Run("INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?)", std::get<0>(key),
           std::get<1>(key), std::get<2>(key), Blob{bytes});
  }
}

bool StatusStore::Idle() {
  MutexLock lock(mutex_);
  return waiting_.empty();
}

bool StatusStore::Stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

void StatusStore::RemoveRuns() {
  while (!gone_.empty() && !Stopping()) {
    if (!RemoveSome(gone_.front())) gone_.pop_front();
    if (!Idle()) return;
  }
}

// In several transactions: the log would become as large as all rows. Returns whether rows may
// remain.
bool StatusStore::RemoveSome(const std::string& run) {
  bool more = false;
  for (const char* step : {"DELETE FROM contacts WHERE run = ?1 AND (plugin, node) IN "
                           "(SELECT plugin, node FROM contacts WHERE run = ?1 LIMIT ?2)",
                           "DELETE FROM progress WHERE run = ?1 AND (plugin, node) IN "
                           "(SELECT plugin, node FROM progress WHERE run = ?1 LIMIT ?2)"}) {
    if (writer_->Run(step, run, kRemoveStep) == kRemoveStep) more = true;
  }
  if (!writer_->failed()) return more;
  HandleFailure("cannot remove a run");
  return false;
}

// Returns the pages of removed rows to the disk, and truncates a large log.
void StatusStore::ReturnSpace() {
  int64_t free = sqlite::FreePages(*writer_);
  bool shrunk = false;
  while (free > sqlite::kKeptFreePages && !writer_->failed() && !Stopping()) {
    const int64_t before = free;
    writer_->Execute(kShrink);
    free = sqlite::FreePages(*writer_);
    // A database of an earlier version keeps its pages.
    if (free >= before) break;
    shrunk = true;
    if (!Idle()) break;
  }
  HandleFailure("cannot return space to the disk");
  // The checkpoint truncates the database, too. If a reader needs the log now, a later one does.
  if (!shrunk && sqlite::LogBytes(*writer_) <= sqlite::kLargeLog) return;
  const int code = sqlite::TruncateLog(*writer_);
  if (code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY) return;
  failed_.Add();
  LogLimited(LogLevel::kError, "cannot truncate the log of status.db", "status.db",
             {{"error", sqlite3_errstr(code)}});
}

void StatusStore::RemoveOld() {
  removed_at_ = clock_.Now();
  const int64_t before = absl::ToUnixMicros(removed_at_ - kEventRetention);
  writer_->Run("DELETE FROM node_events WHERE at < ?", before);
  writer_->Run("DELETE FROM senders WHERE last_seen < ?", before);
  HandleFailure("cannot remove old runs and nodes");
}

}  // namespace muster
