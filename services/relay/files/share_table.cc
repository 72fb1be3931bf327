#include "services/relay/files/share_table.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/store/sqlite/local_rows.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::LocalDatabase;
using sqlite::Rows;

// The body is the last column, so that a listing does not read it.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE shares (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  stage INTEGER NOT NULL,        -- ShareStage
  from_parent INTEGER NOT NULL,
  unreported INTEGER NOT NULL,
  removing INTEGER NOT NULL,
  child TEXT NOT NULL,
  state BLOB NOT NULL,           -- a Share without its file
  file BLOB NOT NULL,            -- the SharedFile
  crc32c INTEGER NOT NULL,       -- of state and file
  body BLOB NOT NULL             -- the bytes of a file up to 64 KiB
);
)sql";
constexpr const char* kSteps[] = {kVersion1};

std::optional<v1::Share> ParseShare(const std::string& state, const std::string& file,
                                    int64_t crc32c) {
  v1::Share share;
  if (Crc32c(state + file) != crc32c || !share.ParseFromString(state) ||
      !share.mutable_file()->ParseFromString(file)) {
    return std::nullopt;
  }
  return share;
}

// Returns the stored file; empty if there is no row.
std::string StoredFile(Connection& db, const std::string& id) {
  Rows rows = db.Query("SELECT file FROM shares WHERE id = ?", id);
  return rows.Next() ? rows.Text() : "";
}

void PutRow(Connection& db, const ShareRecord& record, std::string_view body) {
  v1::Share without_file = record.share;
  without_file.clear_file();
  const std::string state = without_file.SerializeAsString();
  std::string file = record.share.file().SerializeAsString();
  if (record.share.file().signature().empty()) {
    if (std::string stored = StoredFile(db, record.id); !stored.empty()) file = std::move(stored);
  }
  db.Run(
      "INSERT INTO shares (id, stage, from_parent, unreported, removing, child, state, file, "
      "crc32c, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO UPDATE "
      "SET stage = ?2, from_parent = ?3, unreported = ?4, removing = ?5, child = ?6, state = ?7, "
      "file = ?8, crc32c = ?9, body = CASE WHEN ?11 THEN body ELSE ?10 END",
      record.id, record.stage, record.from_parent, record.unreported, record.removing, record.child,
      Blob{state}, Blob{file}, Crc32c(state + file), Blob{body},
      body.empty() && record.has_bytes());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShareTable>> ShareTable::Open(const std::string& path,
                                                             LocalDatabase::OnFatal on_fatal) {
  ASSIGN_OR_RETURN(auto database, LocalDatabase::Open(path, kSteps, std::move(on_fatal)));
  return std::unique_ptr<ShareTable>(new ShareTable(path, std::move(database)));
}

absl::StatusOr<ShareTable::Contents> ShareTable::Load() {
  Contents contents;
  RETURN_IF_ERROR(database_->Read([&](Connection& db) {
    Rows rows = db.Query(
        "SELECT id, stage, from_parent, unreported, removing, child, state, file, crc32c, "
        "length(body) FROM shares ORDER BY number");
    while (rows.Next()) {
      Row row;
      ShareRecord& record = row.record;
      record.id = rows.Text();
      record.stage = rows.Enum<ShareStage>();
      record.from_parent = rows.Bool();
      record.unreported = rows.Bool();
      record.removing = rows.Bool();
      record.child = rows.Text();
      const std::string state = rows.Text();
      const std::string file = rows.Text();
      auto share = ParseShare(state, file, rows.Int());
      row.body_size = rows.Int();
      if (!share || record.stage < ShareStage::kIncoming || record.stage > ShareStage::kEnded) {
        contents.damaged.push_back(record.id);
        continue;
      }
      record.share = *std::move(share);
      record.share.mutable_file()->clear_signature();
      record.share.mutable_file()->clear_certificate_chain_pem();
      contents.rows.push_back(std::move(row));
    }
    return absl::OkStatus();
  }));
  return contents;
}

absl::Status ShareTable::Put(const ShareRecord& record) {
  return database_->Write([&](Connection& db) {
    PutRow(db, record, "");
    return absl::OkStatus();
  });
}

absl::Status ShareTable::PutHeld(const ShareRecord& record, std::string_view body,
                                 const std::string& replaced_id) {
  return database_->Write([&](Connection& db) {
    if (!replaced_id.empty()) db.Run("DELETE FROM shares WHERE id = ?", replaced_id);
    PutRow(db, record, body);
    return absl::OkStatus();
  });
}

absl::Status ShareTable::Remove(const std::string& id) {
  return sqlite::WriteRow(*database_, "DELETE FROM shares WHERE id = ?", id);
}

absl::StatusOr<v1::SharedFile> ShareTable::ReadFile(const std::string& id) {
  std::optional<v1::Share> share;
  RETURN_IF_ERROR(sqlite::ReadRow(*database_, "SELECT state, file, crc32c FROM shares WHERE id = ?",
                                  id, [&](Rows& row) {
                                    const std::string state = row.Text();
                                    const std::string file = row.Text();
                                    share = ParseShare(state, file, row.Int());
                                  }));
  if (share) return std::move(*share->mutable_file());
  return absl::DataLossError(absl::StrCat(path_, ": the record ", id, " is damaged"));
}

absl::StatusOr<std::string> ShareTable::ReadBody(const std::string& id) {
  return sqlite::ReadText(*database_, "SELECT body FROM shares WHERE id = ?", id);
}

}  // namespace muster
