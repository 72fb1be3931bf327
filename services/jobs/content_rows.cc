#include "services/jobs/content_rows.h"

#include "absl/strings/escaping.h"
#include "services/common/errors/contents.h"
#include "services/jobs/deployment_rows.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

// Reads sha256, size and created_by.
ContentRow NextContent(Rows& rows) {
  ContentRow row;
  row.sha256 = rows.Text();
  row.size = rows.Int();
  row.created_by = rows.Text();
  return row;
}

std::vector<ContentUploadRow> UploadsOf(Rows rows) {
  std::vector<ContentUploadRow> uploads;
  while (rows.Next()) {
    ContentUploadRow& row = uploads.emplace_back();
    row.upload = rows.Text();
    row.content = NextContent(rows);
  }
  return uploads;
}

}  // namespace

std::optional<ContentRow> ReadContent(Connection& db, const std::string& sha256) {
  Rows rows =
      db.Query("SELECT sha256, size, created_by FROM contents WHERE sha256 = ?", Blob{sha256});
  if (!rows.Next()) return std::nullopt;
  return NextContent(rows);
}

std::vector<ContentRow> ReadContents(Connection& db) {
  std::vector<ContentRow> contents;
  Rows rows = db.Query("SELECT sha256, size, created_by FROM contents");
  while (rows.Next()) contents.push_back(NextContent(rows));
  return contents;
}

void WriteContent(Connection& db, const ContentRow& row, absl::Time kept_until) {
  db.Run(
      "INSERT INTO contents VALUES (?, ?, ?, ?) "
      "ON CONFLICT (sha256) DO UPDATE SET kept_until = max(kept_until, excluded.kept_until)",
      Blob{row.sha256}, row.size, row.created_by, absl::ToUnixMicros(kept_until));
}

bool KeepContent(Connection& db, const std::string& sha256, absl::Time kept_until) {
  return db.Run("UPDATE contents SET kept_until = max(kept_until, ?) WHERE sha256 = ?",
                absl::ToUnixMicros(kept_until), Blob{sha256}) > 0;
}

std::vector<std::string> ReadUnusedContents(Connection& db, absl::Time now, size_t limit) {
  std::vector<std::string> unused;
  Rows rows = db.Query(
      "SELECT sha256 FROM contents c WHERE kept_until <= ? AND NOT EXISTS "
      "(SELECT 1 FROM deployment_contents d WHERE d.sha256 = c.sha256) LIMIT ?",
      absl::ToUnixMicros(now), limit);
  while (rows.Next()) unused.push_back(rows.Text());
  return unused;
}

bool DeleteUnusedContent(Connection& db, const std::string& sha256, absl::Time now) {
  return db.Run(
             "DELETE FROM contents WHERE sha256 = ? AND kept_until <= ? AND NOT EXISTS "
             "(SELECT 1 FROM deployment_contents d WHERE d.sha256 = contents.sha256)",
             Blob{sha256}, absl::ToUnixMicros(now)) > 0;
}

void DeleteContent(Connection& db, const std::string& sha256) {
  db.Run("DELETE FROM contents WHERE sha256 = ?", Blob{sha256});
}

std::optional<ContentRow> ReadUpload(Connection& db, const std::string& upload) {
  Rows rows =
      db.Query("SELECT sha256, size, created_by FROM content_uploads WHERE upload = ?", upload);
  if (!rows.Next()) return std::nullopt;
  return NextContent(rows);
}

std::vector<ContentUploadRow> ReadUploads(Connection& db) {
  return UploadsOf(db.Query("SELECT upload, sha256, size, created_by FROM content_uploads"));
}

std::vector<ContentUploadRow> ReadExpiredUploads(Connection& db, absl::Time now, size_t limit) {
  return UploadsOf(
      db.Query("SELECT upload, sha256, size, created_by FROM content_uploads "
               "WHERE kept_until <= ? LIMIT ?",
               absl::ToUnixMicros(now), limit));
}

bool DeleteExpiredUpload(Connection& db, const std::string& upload, absl::Time now) {
  return db.Run("DELETE FROM content_uploads WHERE upload = ? AND kept_until <= ?", upload,
                absl::ToUnixMicros(now)) > 0;
}

void WriteUpload(Connection& db, const ContentUploadRow& row, absl::Time kept_until) {
  db.Run(
      "INSERT INTO content_uploads VALUES (?, ?, ?, ?, ?) "
      "ON CONFLICT (upload) DO UPDATE SET kept_until = excluded.kept_until",
      row.upload, Blob{row.content.sha256}, row.content.size, row.content.created_by,
      absl::ToUnixMicros(kept_until));
}

void DeleteUpload(Connection& db, const std::string& upload) {
  db.Run("DELETE FROM content_uploads WHERE upload = ?", upload);
}

ContentUsage ReadContentUsage(Connection& db, const std::string& creator) {
  ContentUsage usage;
  Rows rows = db.Query(
      "SELECT total(count), total(bytes), total(bytes * (created_by = ?)) FROM content_usage",
      creator);
  if (!rows.Next()) return usage;
  usage.count = rows.Int();
  usage.bytes = rows.Int();
  usage.bytes_of_creator = rows.Int();
  return usage;
}

absl::Status AddContentsOf(Connection& db, int64_t id, const v1::CreateDeploymentRequest& request) {
  const auto command = Parsed<v1::Command>(request.command().command());
  const v1::Command::Container& container = command.container();
  const auto& files =
      container.has_build() ? container.build().files() : container.deployment().files();
  for (const v1::Command::File& file : files) {
    if (file.sha256().empty()) continue;
    const auto content = ReadContent(db, file.sha256());
    if (db.failed()) return absl::OkStatus();
    if (!content || content->size != file.size()) {
      return errors::ContentMissing(file.path(), absl::BytesToHexString(file.sha256()));
    }
    db.Run("INSERT OR IGNORE INTO deployment_contents VALUES (?, ?)", id, Blob{file.sha256()});
  }
  return absl::OkStatus();
}

void DeleteContentsOf(Connection& db, int64_t id) {
  db.Run("DELETE FROM deployment_contents WHERE deployment = ?", id);
}

std::optional<int64_t> FindDeploymentWithContent(Connection& db, const std::string& deployment,
                                                 const std::string& sha256) {
  Rows rows = db.Query(
      "SELECT d.id FROM deployments d JOIN deployment_contents c ON c.deployment = d.id "
      "WHERE d.deployment = ? AND c.sha256 = ?",
      deployment, Blob{sha256});
  if (!rows.Next()) return std::nullopt;
  return rows.Int();
}

std::string ReadRequest(Connection& db, int64_t id) {
  Rows rows = db.Query("SELECT request FROM deployments WHERE id = ?", id);
  return rows.Next() ? rows.Text() : "";
}

}  // namespace muster
