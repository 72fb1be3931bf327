// The durable records of shared files.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_TABLE_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_TABLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/relay/files/share_record.h"

namespace muster {

// Thread-safe; every call waits for the disk. A change is durable when its call returns.
class ShareTable {
 public:
  // Opens or creates the database. DATA_LOSS (STORE_CORRUPT) if the file is damaged.
  static absl::StatusOr<std::unique_ptr<ShareTable>> Open(
      const std::string& path, sqlite::LocalDatabase::OnFatal on_fatal = {});

  struct Row {
    ShareRecord record;     // without signature and certificates
    int64_t body_size = 0;  // of the bytes in the row
  };
  struct Contents {
    std::vector<Row> rows;
    std::vector<std::string> damaged;  // ids of rows that do not match their checksums
  };
  absl::StatusOr<Contents> Load();

  // Adds or changes a record. A record without a signature keeps the stored one. A record without
  // bytes loses those in its row.
  absl::Status Put(const ShareRecord& record);

  // Stores a record with its bytes (empty if they are in a blob) and removes the record that it
  // replaces ("" for none), in one step.
  absl::Status PutHeld(const ShareRecord& record, std::string_view body,
                       const std::string& replaced_id);

  // Success also if there is no such row.
  absl::Status Remove(const std::string& id);

  // Returns the file with signature and certificates. NOT_FOUND; DATA_LOSS.
  absl::StatusOr<v1::SharedFile> ReadFile(const std::string& id);
  absl::StatusOr<std::string> ReadBody(const std::string& id);

 private:
  ShareTable(std::string path, std::unique_ptr<sqlite::LocalDatabase> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  const std::string path_;
  const std::unique_ptr<sqlite::LocalDatabase> database_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_TABLE_H_
