// A pool of read-only connections.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_READER_POOL_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_READER_POOL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"
#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// Lends each connection to one reader at a time. Thread-safe.
class ReaderPool {
 public:
  static absl::StatusOr<std::unique_ptr<ReaderPool>> Open(const std::string& path, int size);

  // Runs `read(connection)` in a read transaction, whose queries see one state. Waits for a free
  // connection. `read` returns a value or a StatusOr of one; a failure of the connection takes
  // precedence.
  template <typename Read>
  auto Run(Read read) {
    const Lease lease(*this);
    using Value = decltype(read(lease.db()));
    using Result = typename Wrap<Value>::type;
    lease.db().Execute("BEGIN");
    Result result = read(lease.db());
    absl::Status failure = lease.db().TakeStatus();
    return failure.ok() ? std::move(result) : Result(failure);
  }

 private:
  template <typename T>
  struct Wrap {
    using type = absl::StatusOr<T>;
  };
  template <typename T>
  struct Wrap<absl::StatusOr<T>> {
    using type = absl::StatusOr<T>;
  };

  class Lease {
   public:
    explicit Lease(ReaderPool& pool) : pool_(pool), db_(pool.Take()) {}
    ~Lease() { pool_.Return(std::move(db_)); }
    Connection& db() const { return *db_; }

   private:
    ReaderPool& pool_;
    std::unique_ptr<Connection> db_;
  };

  std::unique_ptr<Connection> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(std::unique_ptr<Connection> db) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<Connection>> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_READER_POOL_H_
