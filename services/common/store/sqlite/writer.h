// The writing connection and its thread.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_WRITER_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"
#include "services/common/store/sqlite/plan_steps.h"
#include "services/common/store/sqlite/sqlite_store.h"
#include "services/common/store/sqlite/subscribers.h"

namespace muster::sqlite {

// 256 MiB: at this size of the WAL the checkpoint waits for readers.
inline constexpr int kMaxWalPages = 65'536;

// Thread-safe.
class Writer {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<CommandResult>)>;

  // `db` must be migrated and in WAL mode. `subscribers` must outlive this object.
  Writer(std::unique_ptr<Connection> db, const SqliteStoreOptions& options,
         Subscribers& subscribers);

  // Commits queued commands, checkpoints the WAL and marks the database as clean.
  ~Writer();

  void Enqueue(Command command, Done done);

  // Stops the store because damage was found. Its callbacks run on the writer's thread.
  void StopDamaged(const absl::Status& cause);

  // Lets the next start check the database, because no check was completed since the last start.
  void KeepUnclean() { stay_unclean_ = true; }

  // Waits until the thread waits for commands.
  void AwaitIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t last_change() const { return committed_change_.load(std::memory_order_acquire); }
  SqliteStoreStats stats() const;

 private:
  struct Item {
    Command command;
    size_t bytes = 0;
    Done done;
  };
  // The creation of a run with a large plan.
  struct Creation {
    PlanSteps steps;
    size_t bytes = 0;  // still counted in queued_bytes_
    Done done;
    bool checked = false;  // CheckData accepted the bytes
  };
  using Outcome = absl::StatusOr<CommandResult>;

  void Loop();
  bool DequeueBatch(std::vector<Item>& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  void CommitBatch(std::vector<Item>& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  void ExtractPlans(std::vector<Item>& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  void AdvancePlan() ABSL_LOCKS_EXCLUDED(mutex_);
  bool TryTogether(const std::vector<Item>& batch, std::vector<Outcome>& outcomes);
  void OneByOne(const std::vector<const Command*>& commands, std::vector<Outcome>& outcomes);
  void RetryWithRoom(const std::vector<Item>& batch, std::vector<Outcome>& outcomes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool MakeRoom(const absl::Status& failure) ABSL_LOCKS_EXCLUDED(mutex_);
  Outcome Apply(const Command& command);
  absl::Status CheckData(size_t bytes);
  absl::Status FoundDamage() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Commit();
  void Rollback();
  absl::Status Failure();
  void Stop(const absl::Status& cause) ABSL_LOCKS_EXCLUDED(mutex_);
  void Maintain(bool idle) ABSL_LOCKS_EXCLUDED(mutex_);
  void Prune();
  absl::Status PruneStep(bool runs);
  void Shrink() ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t FreePages();
  void Checkpoint(int mode) ABSL_LOCKS_EXCLUDED(mutex_);
  void CheckpointIdle() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleCheckpoint(int code, bool complete) ABSL_LOCKS_EXCLUDED(mutex_);

  const SqliteStoreOptions options_;
  Subscribers& subscribers_;
  const std::unique_ptr<Connection> db_;
  WriteContext context_;
  std::deque<Creation> creations_;  // this and the next four: on the writer's thread
  bool more_to_prune_ = true;
  bool more_to_shrink_ = true;
  bool full_ = false;            // no space since the last commit; this is logged
  bool prune_again_ = false;     // the last attempt failed
  bool checkpoint_due_ = false;  // when the queue is empty
  int wal_pages_ = 0;            // not checkpointed yet
  int restart_at_;               // at this number of pages the checkpoint waits for readers

  std::atomic<int64_t> committed_change_{0};
  std::atomic<bool> stay_unclean_ = false;
  mutable Mutex mutex_;
  CondVar work_;
  CondVar idle_changed_;
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;  // the thread waits
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status fatal_ ABSL_GUARDED_BY(mutex_);
  absl::Status damage_ ABSL_GUARDED_BY(mutex_);
  SqliteStoreStats stats_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // declared last: starts after all other members
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_WRITER_H_
