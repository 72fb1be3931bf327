#include "services/common/store/sqlite/reader_pool.h"

#include "services/common/base/status_macros.h"

namespace muster::sqlite {

absl::StatusOr<std::unique_ptr<ReaderPool>> ReaderPool::Open(const std::string& path, int size) {
  auto pool = std::make_unique<ReaderPool>();
  for (int i = 0; i < size; ++i) {
    ASSIGN_OR_RETURN(auto db, Connection::Open(path, Connection::Access::kReadOnly));
    db->Execute(
        "PRAGMA query_only = 1; PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = 0;"
        "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4096; PRAGMA busy_timeout = 5000;");
    RETURN_IF_ERROR(db->TakeStatus());
    MutexLock lock(pool->mutex_);
    pool->free_.push_back(std::move(db));
  }
  return pool;
}

std::unique_ptr<Connection> ReaderPool::Take() {
  MutexLock lock(mutex_);
  while (free_.empty()) returned_.Wait(mutex_);
  auto db = std::move(free_.back());
  free_.pop_back();
  return db;
}

void ReaderPool::Return(std::unique_ptr<Connection> db) {
  if (db->in_transaction()) db->Execute("COMMIT");
  db->TakeStatus().IgnoreError();
  {
    MutexLock lock(mutex_);
    free_.push_back(std::move(db));
  }
  returned_.NotifyOne();
}

}  // namespace muster::sqlite
