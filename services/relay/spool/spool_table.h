// The durable records of a spool: one row for each upload and each complete result.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_SPOOL_TABLE_H_
#define MUSTER_SERVICES_RELAY_SPOOL_SPOOL_TABLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/file_ops.h"
#include "services/common/store/sqlite/local_database.h"

namespace muster {

// A row. The header is a SubmitResultRequest without `body`. The header of a complete result has
// all fields that a delivery needs.
struct SpoolRow {
  std::string id;  // 32 hex digits
  bool complete = false;
  v1::SubmitResultRequest header;
};

// Thread-safe; every call waits for the disk. A change is durable when its call returns.
class SpoolTable {
 public:
  // Opens or creates the database on `ops`, the disk of SQLite's VFS. DATA_LOSS (STORE_CORRUPT) if
  // the file is damaged.
  static absl::StatusOr<std::unique_ptr<SpoolTable>> Open(
      const std::string& path, sqlite::LocalDatabase::OnFatal on_fatal = {},
      FileOps& ops = PosixFileOps());

  struct Contents {
    std::vector<SpoolRow> rows;        // complete results first, in the order of their completion
    std::vector<std::string> damaged;  // ids of rows that do not match their checksums
  };
  absl::StatusOr<Contents> Load();

  // Adds an upload in progress. Does nothing if it exists.
  absl::Status AddUpload(const std::string& id, const v1::SubmitResultRequest& header);

  // Replaces an upload by the complete result; `body` has its bytes unless they are in a blob.
  // UPLOAD_NOT_FOUND without a row: the sender opens the upload again.
  absl::Status Complete(const std::string& id, const v1::SubmitResultRequest& header,
                        std::string_view body);

  // Success also if there is no such row.
  absl::Status Remove(const std::string& id);

  // NOT_FOUND; DATA_LOSS (SPOOL_DAMAGED) if the row does not match its checksum.
  absl::StatusOr<v1::SubmitResultRequest> ReadHeader(const std::string& id);
  absl::StatusOr<std::string> ReadBody(const std::string& id);

 private:
  SpoolTable(std::string path, std::unique_ptr<sqlite::LocalDatabase> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  const std::string path_;
  const std::unique_ptr<sqlite::LocalDatabase> database_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_SPOOL_TABLE_H_
