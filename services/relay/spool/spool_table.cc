#include "services/relay/spool/spool_table.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/results.h"
#include "services/common/store/sqlite/local_rows.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::LocalDatabase;
using sqlite::Rows;

// The body is the last column, so that a listing does not read it.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE entries (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  completion INTEGER NOT NULL,  -- rises with each complete result; 0: the upload is in progress
  header BLOB NOT NULL,
  header_crc32c INTEGER NOT NULL,
  body BLOB NOT NULL
);
CREATE INDEX entries_by_completion ON entries (completion);
)sql";
constexpr const char* kSteps[] = {kVersion1};

std::optional<v1::SubmitResultRequest> ParseHeader(const std::string& bytes, int64_t crc32c) {
  v1::SubmitResultRequest header;
  if (Crc32c(bytes) != crc32c || !header.ParseFromString(bytes)) return std::nullopt;
  return header;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SpoolTable>> SpoolTable::Open(const std::string& path,
                                                             LocalDatabase::OnFatal on_fatal,
                                                             FileOps& ops) {
  ASSIGN_OR_RETURN(auto database, LocalDatabase::Open(path, kSteps, std::move(on_fatal), ops));
  return std::unique_ptr<SpoolTable>(new SpoolTable(path, std::move(database)));
}

absl::StatusOr<SpoolTable::Contents> SpoolTable::Load() {
  Contents contents;
  const auto load = [&](Connection& db, const char* sql) {
    Rows rows = db.Query(sql);
    while (rows.Next()) {
      SpoolRow row;
      row.id = rows.Text();
      row.complete = rows.Int() != 0;
      const std::string bytes = rows.Text();
      auto header = ParseHeader(bytes, rows.Int());
      if (!header) {
        contents.damaged.push_back(row.id);
        continue;
      }
      row.header = *std::move(header);
      contents.rows.push_back(std::move(row));
    }
  };
  RETURN_IF_ERROR(database_->Read([&](Connection& db) {
    load(db,
         "SELECT id, completion, header, header_crc32c FROM entries WHERE completion > 0 "
         "ORDER BY completion");
    load(db, "SELECT id, completion, header, header_crc32c FROM entries WHERE completion = 0");
    return absl::OkStatus();
  }));
  return contents;
}

absl::Status SpoolTable::AddUpload(const std::string& id, const v1::SubmitResultRequest& header) {
  const std::string bytes = header.SerializeAsString();
  return database_->Write([&](Connection& db) {
    db.Run(
        "INSERT INTO entries (id, completion, header, header_crc32c, body) "
        "VALUES (?, 0, ?, ?, x'') ON CONFLICT DO NOTHING",
        id, Blob{bytes}, Crc32c(bytes));
    return absl::OkStatus();
  });
}

absl::Status SpoolTable::Complete(const std::string& id, const v1::SubmitResultRequest& header,
                                  std::string_view body) {
  const std::string bytes = header.SerializeAsString();
  return database_->Write([&](Connection& db) -> absl::Status {
    const int64_t changed = db.Run(
        "UPDATE entries SET completion = (SELECT MAX(completion) + 1 FROM entries), header = ?, "
        "header_crc32c = ?, body = ? WHERE id = ? AND completion = 0",
        Blob{bytes}, Crc32c(bytes), Blob{body}, id);
    if (changed == 1 || db.failed()) return absl::OkStatus();
    return errors::UploadNotFound(id);
  });
}

absl::Status SpoolTable::Remove(const std::string& id) {
  return sqlite::WriteRow(*database_, "DELETE FROM entries WHERE id = ?", id);
}

absl::StatusOr<v1::SubmitResultRequest> SpoolTable::ReadHeader(const std::string& id) {
  std::optional<v1::SubmitResultRequest> header;
  RETURN_IF_ERROR(sqlite::ReadRow(
      *database_, "SELECT header, header_crc32c FROM entries WHERE id = ?", id, [&](Rows& row) {
        const std::string bytes = row.Text();
        header = ParseHeader(bytes, row.Int());
      }));
  if (header) return *std::move(header);
  return errors::SpoolDamaged(path_, absl::StrCat("entry ", id, " does not match its checksum"));
}

absl::StatusOr<std::string> SpoolTable::ReadBody(const std::string& id) {
  return sqlite::ReadText(*database_, "SELECT body FROM entries WHERE id = ?", id);
}

}  // namespace muster
