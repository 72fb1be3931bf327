// StateStore and ChangeFeed in one SQLite file: the default for one machine.
//
// The rules that keep it safe:
//  - WAL, synchronous=FULL: a commit is on the disk before anybody hears of it.
//  - Exactly one connection writes and checkpoints, on one thread. SQLite before 3.51.3 (Debian has
//    3.40) can corrupt a database when one connection resets the WAL while another finishes a
//    checkpoint; nothing here may ever open a second writing connection. Readers are opened
//    read-only; no connection maps the file.
//  - One process: an exclusive lock on "<path>.lock". A second one is refused.
//  - Commands that wait together are committed together; nothing waits for company when idle.
//  - After a failed write or sync other than a full disk nothing more is written: the file is what
//    it is on the disk, and only a restart, which recovers it, may go on.
//
// SQLite does its own file work (through its VFS) and brings its own crash safety, tested by its
// makers; it does not go through base/file_ops.h. Our part is the rules above.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_SQLITE_STORE_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_SQLITE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/store/change_feed.h"
#include "services/common/store/state_store.h"

namespace muster {

struct SqliteStoreOptions {
  std::string path;  // of the database file, made (0600) if missing; its folder must be there

  // Called once, on the store's thread, when the disk failed and the store stopped working: the
  // service has to end, and its next start recovers. Every later call fails with STORE_FAILED.
  std::function<void(const absl::Status&)> on_fatal;

  size_t max_queue = 65'536;           // commands that wait for their commit
  size_t max_queue_bytes = 64u << 20;  // and the bytes in them
  int64_t max_file_bytes = 0;  // of the database; 0: as large as the disk. Beyond: DISK_FULL
  int readers = 4;             // connections that read at the same time
  // A database up to this size is checked before it is served after a stop that was not clean; a
  // larger one meanwhile, since a start may not take so long.
  int64_t checked_at_start = int64_t{64} << 20;
  int64_t retained_changes = ChangeFeed::kRetainedChanges;
};

// What a store did since it was opened, for metrics.
struct SqliteStoreStats {
  uint64_t commands = 0;  // committed
  uint64_t batches = 0;
  uint64_t refused = 0;  // because the queue was full
  uint64_t failed = 0;   // answered with an error status
  uint64_t checkpoints = 0;
  size_t queued = 0;  // now
  int64_t wal_bytes = 0;
};

// Thread-safe. Its destruction commits what was queued and waits for callbacks under way.
class SqliteStore : public StateStore, public ChangeFeed {
 public:
  virtual SqliteStoreStats stats() const = 0;
};

// Opens or makes the database. FAILED_PRECONDITION with reason STORE_IN_USE (another process has it
// open) or STORE_TOO_NEW (a newer Muster wrote it), DATA_LOSS with STORE_CORRUPT (checked after a
// stop that was not clean; damage that is found in a large database only while it is served goes to
// `on_fatal`, and every later start is refused).
absl::StatusOr<std::unique_ptr<SqliteStore>> OpenSqliteStore(SqliteStoreOptions options);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_SQLITE_STORE_H_
