// The rows of contents in jobs.db (jobs_schema.h). The functions run in a transaction of the
// caller.
#ifndef MUSTER_SERVICES_JOBS_CONTENT_ROWS_H_
#define MUSTER_SERVICES_JOBS_CONTENT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/deployments.pb.h"
#include "services/common/store/sqlite/connection.h"

namespace muster {

// A content or an upload of it. A plain value.
struct ContentRow {
  std::string sha256;  // 32 bytes
  int64_t size = 0;
  std::string created_by;  // URI of the operator
};

// The number and the bytes of all contents and uploads, and the bytes of those of one creator.
struct ContentUsage {
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t bytes_of_creator = 0;
};

std::optional<ContentRow> ReadContent(sqlite::Connection& db, const std::string& sha256);
std::vector<ContentRow> ReadContents(sqlite::Connection& db);
// Stores a content, or prolongs the time for which it is kept.
void WriteContent(sqlite::Connection& db, const ContentRow& row, absl::Time kept_until);
// Prolongs the time for which a content is kept. Returns false if it is not stored.
bool KeepContent(sqlite::Connection& db, const std::string& sha256, absl::Time kept_until);
// Returns contents that no deployment names and that are not kept any longer, at most `limit`.
std::vector<std::string> ReadUnusedContents(sqlite::Connection& db, absl::Time now, size_t limit);
// Deletes a content if ReadUnusedContents would return it. Returns whether it did.
bool DeleteUnusedContent(sqlite::Connection& db, const std::string& sha256, absl::Time now);
// Deletes a content whose bytes are lost.
void DeleteContent(sqlite::Connection& db, const std::string& sha256);

// An upload, with its id.
struct ContentUploadRow {
  std::string upload;
  ContentRow content;
};
std::optional<ContentRow> ReadUpload(sqlite::Connection& db, const std::string& upload);
std::vector<ContentUploadRow> ReadUploads(sqlite::Connection& db);
std::vector<ContentUploadRow> ReadExpiredUploads(sqlite::Connection& db, absl::Time now,
                                                 size_t limit);
// Stores an upload, or prolongs the time for which it is kept.
void WriteUpload(sqlite::Connection& db, const ContentUploadRow& row, absl::Time kept_until);
// Deletes an upload if ReadExpiredUploads would return it. Returns whether it did.
bool DeleteExpiredUpload(sqlite::Connection& db, const std::string& upload, absl::Time now);
void DeleteUpload(sqlite::Connection& db, const std::string& upload);

ContentUsage ReadContentUsage(sqlite::Connection& db, const std::string& creator);

// Stores which contents the command of a new deployment names. `id`: of its row.
// FAILED_PRECONDITION (CONTENT_MISSING) if one of them is not stored with this size.
absl::Status AddContentsOf(sqlite::Connection& db, int64_t id,
                           const v1::CreateDeploymentRequest& request);
// Deletes the rows of AddContentsOf.
void DeleteContentsOf(sqlite::Connection& db, int64_t id);
// Returns the row of a deployment if its command names this content.
std::optional<int64_t> FindDeploymentWithContent(sqlite::Connection& db,
                                                 const std::string& deployment,
                                                 const std::string& sha256);
// Returns the serialised CreateDeploymentRequest of a row; empty if there is none.
std::string ReadRequest(sqlite::Connection& db, int64_t id);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_CONTENT_ROWS_H_
