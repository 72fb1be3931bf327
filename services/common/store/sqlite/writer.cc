#include "services/common/store/sqlite/writer.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/store.h"
#include "services/common/store/sqlite/damage.h"
#include "services/common/store/sqlite/identities.h"
#include "services/common/store/sqlite/nodes.h"
#include "services/common/store/sqlite/results.h"
#include "services/common/store/sqlite/runs.h"
#include "services/common/store/sqlite/status_listeners.h"
#include "services/common/store/sqlite/uploads.h"

namespace muster::sqlite {
namespace {

constexpr size_t kMaxBatch = 512;

// Returns the approximate size of a command in the queue.
size_t BytesOf(const Command& command) {
  size_t bytes = 1024;
  if (const auto* commit = std::get_if<CommitResult>(&command)) {
    const ResultRecord& result = commit->result;
    bytes += result.body.size() + result.error.size() + result.delivery.signer_pem.size();
  } else if (const auto* create = std::get_if<CreateRun>(&command)) {
    bytes += create->pairs.size() * 128;
    for (const PluginRecord& plugin : create->run.plugins) bytes += plugin.definition_yaml.size();
  }
  return bytes;
}

// Returns true if the command has stored a run or the bytes of a result.
bool AddedData(const Command& command, const CommandResult& result) {
  if (const auto* commit = std::get_if<CommitResult>(&command)) {
    return commit->result.blob.empty() &&
           std::get<CommitResult::Result>(result).verdict == CommitResult::Verdict::kCommitted;
  }
  const auto* created = std::get_if<CreateRun::Result>(&result);
  return created != nullptr && !created->existed;
}

// Returns true for the commands that an operator needs on a full disk: those that end, remove or
// revoke.
bool MakesRoomOrRevokes(const Command& command) {
  return std::visit(
      []<typename C>(const C&) {
        return std::is_same_v<C, EndRun> || std::is_same_v<C, DeleteRun> ||
               std::is_same_v<C, WipeAuthority> || std::is_same_v<C, AbandonUpload> ||
               std::is_same_v<C, Revoke> || std::is_same_v<C, RevokeNode> ||
               std::is_same_v<C, RemoveNode> || std::is_same_v<C, RevokeJoinToken>;
      },
      command);
}

}  // namespace

Writer::Writer(std::unique_ptr<Connection> db, const SqliteStoreOptions& options,
               Subscribers& subscribers)
    : options_(options),
      subscribers_(subscribers),
      db_(std::move(db)),
      context_(*db_),
      restart_at_(kMaxWalPages) {
  context_.Load();
  committed_change_ = context_.last_change();
  sqlite3_wal_hook(
      db_->handle(),
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<Writer*>(self)->wal_pages_ = pages;
        return SQLITE_OK;
      },
      this);
  thread_ = std::thread([this] { Loop(); });
  pthread_setname_np(thread_.native_handle(), "store");
}

Writer::~Writer() {
  {
    MutexLock lock(mutex_);
    closing_ = true;
  }
  work_.NotifyOne();
  thread_.join();
}

void Writer::Enqueue(Command command, Done done) {
  const size_t bytes = BytesOf(command);
  absl::Status refused;
  {
    MutexLock lock(mutex_);
    if (!fatal_.ok()) {
      refused = fatal_;
    } else if (queue_.size() >= options_.max_queue ||
               (!queue_.empty() && queued_bytes_ + bytes > options_.max_queue_bytes)) {
      ++stats_.refused;
      refused = errors::StoreBusy();
    } else {
      queued_bytes_ += bytes;
      queue_.push_back({std::move(command), bytes, std::move(done)});
    }
  }
  if (!refused.ok()) return done(refused);
  work_.NotifyOne();
}

void Writer::StopDamaged(const absl::Status& cause) {
  {
    MutexLock lock(mutex_);
    damage_ = cause;
  }
  work_.NotifyOne();
}

SqliteStoreStats Writer::stats() const {
  MutexLock lock(mutex_);
  SqliteStoreStats stats = stats_;
  stats.queued = queue_.size();
  return stats;
}

void Writer::AwaitIdle() {
  MutexLock lock(mutex_);
  while (!idle_ || !queue_.empty()) idle_changed_.Wait(mutex_);
}

// ---- The thread ----

void Writer::Loop() {
  std::vector<Item> batch;
  while (DequeueBatch(batch)) {
    if (const absl::Status cause = FoundDamage(); !cause.ok()) Stop(cause);
    ExtractPlans(batch);
    const bool idle = batch.empty() && creations_.empty();
    if (!batch.empty()) CommitBatch(batch);
    batch.clear();
    if (!creations_.empty()) AdvancePlan();
    Maintain(idle);
  }
  if (!Begin().ok()) return;
  if (!stay_unclean_) db_->Execute("UPDATE marks SET value = 'yes' WHERE name = 'clean'");
  if (Commit().ok()) Checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
}

// Dequeues the waiting commands; an empty batch means only housekeeping is due. Returns false at
// the end.
bool Writer::DequeueBatch(std::vector<Item>& batch) {
  MutexLock lock(mutex_);
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closing_ || !queue_.empty() || (fatal_.ok() && !damage_.ok());
  };
  const bool housekeeping = fatal_.ok() && (more_to_prune_ || more_to_shrink_ || checkpoint_due_);
  while (!housekeeping && creations_.empty() && !ready()) {
    idle_ = true;
    idle_changed_.NotifyAll();
    work_.Wait(mutex_);
  }
  idle_ = false;
  while (!queue_.empty() && batch.size() < kMaxBatch) {
    queued_bytes_ -= queue_.front().bytes;
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return !batch.empty() || !creations_.empty() || !closing_;
}

// Removes large plans from the batch: they are written between batches, some pairs at a time.
void Writer::ExtractPlans(std::vector<Item>& batch) {
  const auto is_large = [](const Item& item) {
    const auto* create = std::get_if<CreateRun>(&item.command);
    return create != nullptr && PlanSteps::IsLarge(*create);
  };
  for (Item& item : batch) {
    if (!is_large(item)) continue;
    creations_.push_back({PlanSteps(std::get<CreateRun>(std::move(item.command))), item.bytes,
                          std::exchange(item.done, nullptr)});
    MutexLock lock(mutex_);
    queued_bytes_ += item.bytes;
  }
  std::erase_if(batch, [](const Item& item) { return item.done == nullptr; });
}

void Writer::AdvancePlan() {
  Creation& creation = creations_.front();
  const int64_t before = context_.last_change();
  std::optional<absl::StatusOr<CreateRun::Result>> answer;
  absl::Status status = Begin();
  if (status.ok()) {
    context_.current.Flush();
    context_.current.Forget();
    answer = creation.steps.Next(context_);
    if (!answer && !std::exchange(creation.checked, true)) status = CheckData(creation.bytes);
    if (db_->failed()) {
      status = Failure();
    } else if (status.ok()) {
      status = Commit();
    }
  }
  if (!status.ok()) {
    Rollback();
    answer = status;
  }
  if (!answer) return;
  Done done = std::move(creation.done);
  const size_t bytes = creation.bytes;
  creations_.pop_front();
  more_to_prune_ = true;  // removes the rows of a creation that failed
  const int64_t last = context_.last_change();
  {
    MutexLock lock(mutex_);
    queued_bytes_ -= bytes;
    ++stats_.batches;
    ++(answer->ok() ? stats_.commands : stats_.failed);
  }
  committed_change_.store(last, std::memory_order_release);
  if (answer->ok()) {
    done(CommandResult(**std::move(answer)));
  } else {
    done(answer->status());
  }
  if (last != before) subscribers_.Notify(last);
}

void Writer::CommitBatch(std::vector<Item>& batch) {
  std::vector<Outcome> outcomes;
  outcomes.reserve(batch.size());
  const int64_t before = context_.last_change();
  if (!TryTogether(batch, outcomes)) {
    outcomes.clear();
    std::vector<const Command*> commands;
    commands.reserve(batch.size());
    for (const Item& item : batch) commands.push_back(&item.command);
    OneByOne(commands, outcomes);
    RetryWithRoom(batch, outcomes);
  }
  const int64_t last = context_.last_change();
  uint64_t failed = 0;
  for (const Outcome& outcome : outcomes) failed += outcome.ok() ? 0 : 1;
  {
    MutexLock lock(mutex_);
    ++stats_.batches;
    stats_.failed += failed;
    stats_.commands += outcomes.size() - failed;
    stats_.wal_bytes = int64_t{4096} * wal_pages_;
  }
  committed_change_.store(last, std::memory_order_release);
  for (size_t i = 0; i < batch.size(); ++i) batch[i].done(std::move(outcomes[i]));
  if (last == before) return;
  full_ = false;
  subscribers_.Notify(last);
}

// Executes all of them in one transaction, which normally succeeds. Returns false if one failed;
// then nothing has changed.
bool Writer::TryTogether(const std::vector<Item>& batch, std::vector<Outcome>& outcomes) {
  bool good = Begin().ok();
  for (size_t i = 0; good && i < batch.size(); ++i) {
    outcomes.push_back(Apply(batch[i].command));
    good = outcomes.back().ok();
  }
  if (good && Commit().ok()) return true;
  Rollback();
  return false;
}

// Executes each command separately, so that a failing one does not affect the others.
void Writer::OneByOne(const std::vector<const Command*>& commands, std::vector<Outcome>& outcomes) {
  absl::Status whole = Begin();
  for (const Command* command : commands) {
    if (!whole.ok()) break;
    const int64_t before = context_.last_change();
    db_->Execute("SAVEPOINT command");
    outcomes.push_back(Apply(*command));
    if (outcomes.back().ok()) {
      context_.current.Flush();
      if (db_->failed()) outcomes.back() = Failure();
    }
    if (!outcomes.back().ok()) {
      context_.current.Forget();
      // SQLite rolls the transaction back itself after some failures.
      if (!db_->in_transaction()) whole = outcomes.back().status();
      if (whole.ok()) db_->Execute("ROLLBACK TO command");
      context_.set_last_change(before);
    }
    if (whole.ok()) db_->Execute("RELEASE command");
  }
  if (whole.ok()) whole = Commit();
  if (whole.ok()) return;
  Rollback();
  outcomes.resize(commands.size(), whole);
  // A command that was refused keeps its own reason.
  for (Outcome& outcome : outcomes) {
    if (outcome.ok()) outcome = whole;
  }
}

// Executes the commands again that must work on a full disk, if they found none of its space and
// room can be made.
void Writer::RetryWithRoom(const std::vector<Item>& batch, std::vector<Outcome>& outcomes) {
  std::vector<const Command*> commands;
  std::vector<size_t> positions;
  absl::Status failure;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!absl::IsResourceExhausted(outcomes[i].status())) continue;
    if (!MakesRoomOrRevokes(batch[i].command)) continue;
    failure = outcomes[i].status();
    commands.push_back(&batch[i].command);
    positions.push_back(i);
  }
  if (!MakeRoom(failure)) return;
  // The commands that succeeded are committed: a failure now does not take their changes back.
  committed_change_.store(context_.last_change(), std::memory_order_release);
  std::vector<Outcome> again;
  OneByOne(commands, again);
  for (size_t i = 0; i < positions.size(); ++i) outcomes[positions[i]] = std::move(again[i]);
}

Writer::Outcome Writer::Apply(const Command& command) {
  if (!std::holds_alternative<CommitResult>(command)) {
    context_.current.Flush();
    context_.current.Forget();
    more_to_prune_ = more_to_prune_ || std::holds_alternative<DeleteRun>(command);
  }
  Outcome outcome = std::visit(
      [this](const auto& c) -> Outcome {
        ASSIGN_OR_RETURN(auto result, Execute(context_, c));
        return CommandResult(std::move(result));
      },
      command);
  if (db_->failed()) outcome = Failure();
  if (outcome.ok() && AddedData(command, *outcome)) {
    if (absl::Status refused = CheckData(BytesOf(command)); !refused.ok()) outcome = refused;
  }
  return outcome;
}

absl::Status Writer::FoundDamage() const {
  MutexLock lock(mutex_);
  return damage_;
}

absl::Status Writer::Begin() {
  {
    MutexLock lock(mutex_);
    if (!fatal_.ok()) return fatal_;
  }
  db_->Execute("BEGIN IMMEDIATE");
  return db_->failed() ? Failure() : absl::OkStatus();
}

absl::Status Writer::Commit() {
  context_.current.Flush();
  db_->Execute("COMMIT");
  return db_->failed() ? Failure() : absl::OkStatus();
}

void Writer::Rollback() {
  if (db_->in_transaction()) db_->Execute("ROLLBACK");
  db_->TakeStatus().IgnoreError();
  context_.current.Forget();
  context_.set_last_change(committed_change_.load(std::memory_order_relaxed));
}

// Returns the connection's failure; stops the store if the content of the disk is unknown.
absl::Status Writer::Failure() {
  const int code = db_->code();
  absl::Status failure = db_->TakeStatus();
  if ((code & 0xff) == SQLITE_FULL && !std::exchange(full_, true)) {
    Log(LogLevel::kWarning, "no space for the state store",
        {{"path", options_.path}, {"error", failure}});
  }
  if (IsFatal(code)) Stop(failure);
  return failure;
}

void Writer::Stop(const absl::Status& cause) {
  {
    MutexLock lock(mutex_);
    if (!fatal_.ok()) return;
    fatal_ = errors::StoreFailed(ToStd(cause.message()));
  }
  // SQLite would checkpoint when the connection closes, and would trust a sync after a failed one.
  // The next start checkpoints from the content of the disk.
  sqlite3_db_config(db_->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (options_.on_fatal) options_.on_fatal(cause);
}

}  // namespace muster::sqlite
