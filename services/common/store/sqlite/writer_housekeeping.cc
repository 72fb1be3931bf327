// Pruning, shrinking and checkpoints, on the writer's thread between batches, and the space of the
// disk.
#include <algorithm>

#include "services/common/base/status_macros.h"
#include "services/common/store/sqlite/runs.h"
#include "services/common/store/sqlite/space.h"
#include "services/common/store/sqlite/writer.h"

namespace muster::sqlite {
namespace {

constexpr int64_t kPruneStep = 4096;
constexpr int kBusyCheckpoint = 16'384;  // 64 MiB: checkpointed between two batches
constexpr char kShrink[] = "PRAGMA incremental_vacuum(512)";

}  // namespace

void Writer::Maintain(bool idle) {
  {
    MutexLock lock(mutex_);
    if (!fatal_.ok()) return;
  }
  if (!idle && prune_again_) more_to_prune_ = true;
  Prune();
  if (idle && more_to_shrink_ && !more_to_prune_) Shrink();
  if (wal_pages_ >= restart_at_) {
    Checkpoint(SQLITE_CHECKPOINT_RESTART);
    // Does not wait after each batch for a reader that takes long (a check).
    restart_at_ = std::max(kMaxWalPages, wal_pages_ + kBusyCheckpoint);
  } else if (idle && checkpoint_due_) {
    CheckpointIdle();
  } else if (wal_pages_ >= kBusyCheckpoint) {
    Checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  }
  // Once after each batch, not repeatedly while a reader holds the WAL.
  checkpoint_due_ =
      !idle && (wal_pages_ >= options_.idle_checkpoint_pages || LogBytes(*db_) > kLargeLog);
}

void Writer::Prune() {
  // The pairs of an unfinished creation look like those of a deleted run.
  const bool runs = more_to_prune_ && creations_.empty();
  if (!runs && !context_.FeedIsLong(options_.retained_changes)) return;
  absl::Status pruned = PruneStep(runs);
  // On a full disk, deleting needs a little space too.
  if (runs && MakeRoom(pruned)) pruned = PruneStep(runs);
  prune_again_ = !pruned.ok();  // with the next batch
  if (prune_again_) more_to_prune_ = false;
  more_to_shrink_ = more_to_shrink_ || runs;
}

absl::Status Writer::PruneStep(bool runs) {
  RETURN_IF_ERROR(Begin());
  bool more = false;
  if (runs) more = PruneDeletedRuns(context_, kPruneStep);
  more = PruneFeed(context_, options_.retained_changes, kPruneStep) || more;
  const absl::Status pruned = db_->failed() ? Failure() : Commit();
  if (!pruned.ok()) {
    Rollback();
    return pruned;
  }
  if (runs || more) more_to_prune_ = more;
  return absl::OkStatus();
}

// Returns the free pages of a pruned database to the disk, some at a time while the store is idle.
void Writer::Shrink() {
  const int64_t before = FreePages();
  more_to_shrink_ = before > kKeptFreePages;
  if (!more_to_shrink_) return;
  absl::Status shrunk = Begin();
  if (shrunk.ok()) {
    db_->Execute(kShrink);
    shrunk = db_->failed() ? Failure() : Commit();
  }
  if (!shrunk.ok()) Rollback();
  const int64_t after = FreePages();
  // A database of an earlier version keeps its pages.
  more_to_shrink_ = shrunk.ok() && after < before && after > kKeptFreePages;
  // The file is truncated by the checkpoint.
  if (!more_to_shrink_ && after < before) CheckpointIdle();
}

int64_t Writer::FreePages() {
  const int64_t pages = sqlite::FreePages(*db_);
  if (db_->failed()) Failure().IgnoreError();
  return pages;
}

// Called after the bytes were written, because only then it is known that they are new. The caller
// rolls the change back if they are refused.
absl::Status Writer::CheckData(size_t bytes) {
  return options_.check_data ? options_.check_data(static_cast<int64_t>(bytes)) : absl::OkStatus();
}

bool Writer::MakeRoom(const absl::Status& failure) {
  if (!absl::IsResourceExhausted(failure) || !options_.make_room || !options_.make_room()) {
    return false;
  }
  // A WAL that grew on the full disk gives its pages back.
  Checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  return true;
}

// A log that grew large returns its space to the disk.
void Writer::CheckpointIdle() {
  if (LogBytes(*db_) <= kLargeLog) return Checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  HandleCheckpoint(TruncateLog(*db_), true);
}

void Writer::Checkpoint(int mode) {
  int pages = 0;
  int done = 0;
  const int code = sqlite3_wal_checkpoint_v2(db_->handle(), nullptr, mode, &pages, &done);
  HandleCheckpoint(code, pages == done);
}

void Writer::HandleCheckpoint(int code, bool complete) {
  {
    MutexLock lock(mutex_);
    ++stats_.checkpoints;
  }
  // All pages are in the database file: the next commit restarts the WAL. If readers still need it,
  // it grows and a later checkpoint tries again.
  if (code == SQLITE_OK && complete) wal_pages_ = 0;
  if (IsFatal(code)) Stop(SqliteError(code, options_.path, "checkpoint"));
}

}  // namespace muster::sqlite
