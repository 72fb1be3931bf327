// The one connection that writes, and its thread.
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

// Thread-safe.
class Writer {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<CommandResult>)>;

  // `db` is ready: migrated, in WAL mode. `subscribers` must outlive this.
  Writer(std::unique_ptr<Connection> db, const SqliteStoreOptions& options,
         Subscribers& subscribers);

  // Commits what is queued, writes everything back into the database file and marks it clean.
  ~Writer();

  void Enqueue(Command command, Done done);

  // Stops the store: damage was found. Its callbacks run on the writer's thread.
  void Condemn(const absl::Status& cause);

  // The next start has to check the database: nobody did since the last one.
  void StayUnclean() { stay_unclean_ = true; }

  int64_t last_change() const { return committed_change_.load(std::memory_order_acquire); }
  SqliteStoreStats stats() const;

 private:
  struct Item {
    Command command;
    size_t bytes = 0;
    Done done;
  };
  // A large plan on its way in.
  struct Creation {
    PlanSteps steps;
    size_t bytes = 0;  // still counted in queued_bytes_
    Done done;
  };
  using Outcome = absl::StatusOr<CommandResult>;

  void Loop();
  bool TakeBatch(std::vector<Item>& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  void CommitBatch(std::vector<Item>& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetAsidePlans(std::vector<Item>& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  void AdvancePlan() ABSL_LOCKS_EXCLUDED(mutex_);
  bool TryTogether(const std::vector<Item>& batch, std::vector<Outcome>& outcomes);
  void OneByOne(const std::vector<Item>& batch, std::vector<Outcome>& outcomes);
  Outcome Apply(const Command& command);
  absl::Status Condemned() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Commit();
  void Rollback();
  absl::Status Failure();
  void Stop(const absl::Status& cause) ABSL_LOCKS_EXCLUDED(mutex_);
  void Maintain(bool idle) ABSL_LOCKS_EXCLUDED(mutex_);
  void Prune();
  void Checkpoint(int mode) ABSL_LOCKS_EXCLUDED(mutex_);

  const SqliteStoreOptions options_;
  Subscribers& subscribers_;
  const std::unique_ptr<Connection> db_;
  WriteContext context_;
  std::deque<Creation> creations_;  // this and the next four: on the writer's thread
  bool more_to_prune_ = true;
  bool full_ = false;            // no room since the last commit: that is in the log
  bool prune_again_ = false;     // the last try failed
  bool checkpoint_due_ = false;  // when there is nothing else to do
  int wal_pages_ = 0;            // not written back yet
  int restart_at_;               // pages: then readers are waited for

  std::atomic<int64_t> committed_change_{0};
  std::atomic<bool> stay_unclean_ = false;
  mutable Mutex mutex_;
  CondVar work_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status fatal_ ABSL_GUARDED_BY(mutex_);
  absl::Status condemned_ ABSL_GUARDED_BY(mutex_);
  SqliteStoreStats stats_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_WRITER_H_
