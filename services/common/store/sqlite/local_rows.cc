#include "services/common/store/sqlite/local_rows.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"

namespace muster::sqlite {

absl::Status WriteRow(LocalDatabase& database, const char* sql, const std::string& id) {
  return database.Write([&](Connection& db) {
    db.Run(sql, id);
    return absl::OkStatus();
  });
}

absl::Status ReadRow(LocalDatabase& database, const char* sql, const std::string& id,
                     const std::function<void(Rows& row)>& read) {
  return database.Read([&](Connection& db) -> absl::Status {
    Rows rows = db.Query(sql, id);
    if (!rows.Next()) return absl::NotFoundError(absl::StrCat("no entry has the id ", id));
    read(rows);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> ReadText(LocalDatabase& database, const char* sql,
                                     const std::string& id) {
  std::string text;
  RETURN_IF_ERROR(ReadRow(database, sql, id, [&](Rows& row) { text = row.Text(); }));
  return text;
}

}  // namespace muster::sqlite
