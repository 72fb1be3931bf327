// StateStore and ChangeFeed in one SQLite file, the default for one machine.
//
// These rules protect the data:
// - WAL, synchronous=FULL: a commit is on the disk before its callback runs.
// - Exactly one connection writes and checkpoints, on one thread. SQLite before 3.51.3 (Debian has
//   3.40) can corrupt a database if one connection resets the WAL while another finishes a
//   checkpoint, so no second writing connection may ever be opened. Readers are read-only; no
//   connection maps the file.
// - One process: an exclusive lock on "<path>.lock". A second process is refused.
// - Commands that are queued together are committed together; an idle store never waits for more.
// - After a failed write or sync, other than a full disk, nothing more is written: only a restart,
//   which recovers the file, may continue.
//
// SQLite accesses its files through its VFS, of which simulated_vfs.h is the one on a simulated
// disk; base/file_ops.h is for the files beside them.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_SQLITE_STORE_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_SQLITE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/common/store/change_feed.h"
#include "services/common/store/state_store.h"

namespace muster {

struct SqliteStoreOptions {
  // The database file, created (0600) if missing; its folder must exist. After the first start
  // the file "<path>.created" is beside it.
  std::string path;

  // Called once, on the store's thread, after the disk failed and the store stopped: the service
  // must end, and its next start recovers the store. Every later call fails with STORE_FAILED.
  std::function<void(const absl::Status&)> on_fatal;

  size_t max_queue = 65'536;           // the limit of queued commands
  size_t max_queue_bytes = 64u << 20;  // and of their bytes
  int64_t max_file_bytes =
      0;            // limit of the database; 0: as large as the disk. Beyond it: DISK_FULL
  int readers = 4;  // connections that read at the same time
  // After an unclean stop, a database up to this size is checked before it is served; a larger one
  // is checked while it is served, because a start may not take that long.
  int64_t checked_at_start = int64_t{64} << 20;
  int64_t retained_changes = ChangeFeed::kRetainedChanges;
  int idle_checkpoint_pages = 1000;  // of the WAL (4 MiB) that an idle store checkpoints

  // Called before a database is created. Returns true if there is data that only a database can
  // have named, so that it is lost: STORE_MISSING. May be empty.
  std::function<absl::StatusOr<bool>()> has_data;

  // Called on the store's thread before a run or the bytes of a result are committed: its error
  // refuses the command. May wait for the disk. May be empty.
  std::function<absl::Status(int64_t bytes)> check_data;
  // Called on the store's thread if a change that ends, removes or revokes finds no space. Returns
  // true if room was made: the change is then tried again. May be empty.
  std::function<bool()> make_room;
};

// The activity of a store since it was opened, for metrics.
struct SqliteStoreStats {
  uint64_t commands = 0;  // committed
  uint64_t batches = 0;
  uint64_t refused = 0;  // because the queue was full
  uint64_t failed = 0;   // ended with an error status
  uint64_t checkpoints = 0;
  size_t queued = 0;  // now
  int64_t wal_bytes = 0;
};

// Thread-safe. The destructor commits queued commands and waits for running callbacks.
class SqliteStore : public StateStore, public ChangeFeed {
 public:
  virtual SqliteStoreStats stats() const = 0;

  // Waits until the store's thread has nothing to do. For tests of a fixed order of calls.
  virtual void AwaitIdle() = 0;
};

// Opens or creates the database. Fails with FAILED_PRECONDITION: STORE_IN_USE if another process
// has opened it, STORE_MISSING if it existed before and is missing or empty, STORE_TOO_NEW if a
// later Muster wrote it. Fails with DATA_LOSS (STORE_CORRUPT) if the check after an unclean stop
// finds damage. Damage of a large database that is found while it is served is passed to
// `on_fatal`, and every later start is refused. `ops` must outlive the store.
absl::StatusOr<std::unique_ptr<SqliteStore>> OpenSqliteStore(SqliteStoreOptions options,
                                                             FileOps& ops = PosixFileOps());

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_SQLITE_STORE_H_
