#include "services/common/store/sqlite/connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/errors/store.h"

namespace muster::sqlite {

absl::Status SqliteError(int code, std::string_view path, std::string_view message) {
  const std::string text = absl::StrCat("state store ", ToAbsl(path), ": ", ToAbsl(message), " (",
                                        sqlite3_errstr(code), ", code ", code, ")");
  switch (code & 0xff) {
    case SQLITE_FULL:  // clients get this message: it contains no path
      return errors::StoreFull();
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return errors::StoreCorrupt(text);
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return errors::StoreNotAccessible(text);
    default:
      return errors::StoreError(text);
  }
}

bool IsFatal(int code) {
  switch (code & 0xff) {
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return true;
    default:
      return false;
  }
}

bool Rows::Next() {
  column_ = 0;
  return connection_->Step(statement_);
}

std::string Rows::Text() {
  const int column = column_++;
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  if (bytes == nullptr) return "";
  return std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path,
                                                             Access access) {
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (access == Access::kReadOnly ? SQLITE_OPEN_READONLY
                                                 : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  if (code != SQLITE_OK) {
    absl::Status status =
        SqliteError(code, path, handle != nullptr ? sqlite3_errmsg(handle) : "cannot open");
    sqlite3_close(handle);
    return status;
  }
  return std::unique_ptr<Connection>(new Connection(handle, path));
}

Connection::~Connection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(handle_);
}

void Connection::Execute(const char* sql) {
  if (failed()) return;
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) Fail(code);
}

sqlite3_stmt* Connection::Prepare(const char* sql) {
  if (failed()) return nullptr;
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return found->second;
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) {
    Fail(code);
    return nullptr;
  }
  statements_.emplace(sql, statement);
  return statement;
}

bool Connection::Step(sqlite3_stmt* statement) {
  if (statement == nullptr || failed()) return false;
  const int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) Fail(code);
  return false;
}

int64_t Connection::Finish(sqlite3_stmt* statement) {
  Step(statement);
  sqlite3_reset(statement);
  return failed() ? 0 : sqlite3_changes64(handle_);
}

void Connection::Fail(int code) {
  if (failed()) return;
  code_ = code;
  status_ = SqliteError(code, path_, sqlite3_errmsg(handle_));
}

absl::Status Connection::TakeStatus() {
  code_ = SQLITE_OK;
  return std::exchange(status_, absl::OkStatus());
}

}  // namespace muster::sqlite
