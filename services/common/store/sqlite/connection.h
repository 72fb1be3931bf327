// A typed wrapper of one SQLite connection.
//
// Failures are sticky: after the first one no statement is executed and queries return no rows. The
// caller checks once, at the end, with TakeStatus(). This keeps the code of a store short, whose
// units of work succeed or are rolled back as a whole.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_CONNECTION_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::sqlite {

// Is bound as BLOB; a plain string is bound as TEXT.
struct Blob {
  std::string_view bytes;
};

// The rows of a query, read column by column from the left. Ends with its scope. Each SQL text
// permits only one at a time.
class Rows {
 public:
  Rows(class Connection* connection, sqlite3_stmt* statement)
      : connection_(connection), statement_(statement) {}
  ~Rows() { sqlite3_reset(statement_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  // Advances to the next row; returns false at the end or after a failure.
  bool Next();

  // Returns the next column of the row.
  int64_t Int() { return sqlite3_column_int64(statement_, column_++); }
  bool Bool() { return Int() != 0; }
  std::string Text();
  template <typename E>
  E Enum() {
    return static_cast<E>(Int());
  }

 private:
  class Connection* const connection_;
  sqlite3_stmt* const statement_;
  int column_ = 0;
};

// Not thread-safe.
class Connection {
 public:
  enum class Access { kReadOnly, kReadWrite };

  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, Access access);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs statements without parameters and without rows (schema, pragmas).
  void Execute(const char* sql);

  // Runs a query. `sql` must be a literal, because its prepared form is cached.
  template <typename... Args>
  Rows Query(const char* sql, const Args&... args) {
    sqlite3_stmt* statement = Prepare(sql);
    int index = 0;
    (Bind(statement, ++index, args, SQLITE_TRANSIENT), ...);
    return Rows(this, statement);
  }

  // Runs a statement that changes rows and returns their number. `sql` as above.
  template <typename... Args>
  int64_t Run(const char* sql, const Args&... args) {
    sqlite3_stmt* statement = Prepare(sql);
    int index = 0;
    (Bind(statement, ++index, args, SQLITE_STATIC), ...);
    return Finish(statement);
  }

  // The rowid of the last insert.
  int64_t last_id() const { return sqlite3_last_insert_rowid(handle_); }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }
  sqlite3* handle() const { return handle_; }

  bool failed() const { return !status_.ok(); }
  // SQLite's extended code of the failure, or SQLITE_OK.
  int code() const { return code_; }
  // Returns the first failure since the last call.
  absl::Status TakeStatus();

 private:
  friend class Rows;
  explicit Connection(sqlite3* handle, std::string path)
      : handle_(handle), path_(std::move(path)) {}

  sqlite3_stmt* Prepare(const char* sql);  // null after a failure; SQLite accepts null
  int64_t Finish(sqlite3_stmt* statement);
  bool Step(sqlite3_stmt* statement);
  void Fail(int code);

  template <typename T>
  void Bind(sqlite3_stmt* statement, int index, const T& value, sqlite3_destructor_type keep) {
    if (statement == nullptr) return;
    int code;
    if constexpr (std::is_same_v<T, Blob>) {
      code = sqlite3_bind_blob64(statement, index, value.bytes.data() ? value.bytes.data() : "",
                                 value.bytes.size(), keep);
    } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      code = sqlite3_bind_int64(statement, index, static_cast<int64_t>(value));
    } else {
      const std::string_view text = value;
      code = sqlite3_bind_text64(statement, index, text.data() ? text.data() : "", text.size(),
                                 keep, SQLITE_UTF8);
    }
    if (code != SQLITE_OK) Fail(code);
  }

  sqlite3* const handle_;
  const std::string path_;
  std::unordered_map<const char*, sqlite3_stmt*> statements_;  // by the literal's address
  absl::Status status_;
  int code_ = SQLITE_OK;
};

// Returns the error of a failed call: RESOURCE_EXHAUSTED (DISK_FULL), DATA_LOSS (STORE_CORRUPT) or
// INTERNAL (STORE_ERROR). All except the first name the file.
absl::Status SqliteError(int code, std::string_view path, std::string_view message);

// Returns whether the content of the disk is unknown after a failure with this code of SQLite.
bool IsFatal(int code);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_CONNECTION_H_
