// The rows and blobs of a spool on the disk.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_SPOOL_STORAGE_H_
#define MUSTER_SERVICES_RELAY_SPOOL_SPOOL_STORAGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/io.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/relay/spool/spool_index.h"
#include "services/relay/spool/spool_table.h"

namespace muster {

// Owns the table and the blobs, reads complete results, and removes entries: the row first, then
// the blob. A failed removal is repeated, so it leaves nothing on the disk. Thread-safe; every call
// waits for the disk.
class SpoolStorage {
 public:
  // Opens or creates <folder>/spool.db and <folder>/blobs. DATA_LOSS (STORE_CORRUPT) if the
  // database is damaged. `ops` has the blobs, and `database_ops` is the disk of SQLite's VFS.
  static absl::StatusOr<std::unique_ptr<SpoolStorage>> Open(const std::string& folder,
                                                            sqlite::LocalDatabase::OnFatal on_fatal,
                                                            FileOps& ops,
                                                            FileOps& database_ops = PosixFileOps());

  SpoolTable& table() { return *table_; }
  BlobStore& blobs() { return *blobs_; }

  // Returns the bytes of a complete result from `offset` on. The error proves a loss (IsProvenLoss)
  // if the stored bytes are fewer than those of the header, or if the bytes of a small result do
  // not match their checksum.
  absl::StatusOr<std::unique_ptr<ByteSource>> Read(const SpoolEntry& entry,
                                                   const v1::SubmitResultRequest& header,
                                                   int64_t offset);

  // Returns OK if all bytes of a complete result exist. Does not read the bytes of a large result.
  absl::Status CheckSize(const SpoolEntry& entry, const v1::SubmitResultRequest& header);

  // Returns OK if the bytes of a complete result match their checksum. Reads all of them.
  absl::Status CheckContent(const SpoolEntry& entry, const v1::SubmitResultRequest& header);

  // Removes the row and the bytes of an entry. Returns false if that failed: the error is logged,
  // and RetryRemovals tries again.
  bool Remove(const SpoolEntry& entry) ABSL_LOCKS_EXCLUDED(mutex_);

  // Repeats the failed removals. Returns the ids of the entries that are removed now.
  std::vector<std::string> RetryRemovals() ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the bytes of uploads and results without a row: the bytes that a crash left between the
  // steps of a removal, or before the first row of an upload. `is_upload` and `has_row` describe an
  // id.
  absl::Status RemoveUnknownBytes(const std::function<bool(const std::string& id)>& is_upload,
                                  const std::function<bool(const std::string& id)>& has_row);

 private:
  SpoolStorage(std::unique_ptr<SpoolTable> table, std::unique_ptr<BlobStore> blobs)
      : table_(std::move(table)), blobs_(std::move(blobs)) {}

  absl::Status RemoveNow(const std::string& id, const std::string& blob);

  const std::unique_ptr<SpoolTable> table_;
  const std::unique_ptr<BlobStore> blobs_;

  Mutex mutex_;
  // Id -> blob of the entries whose removal failed.
  std::map<std::string, std::string> unremoved_ ABSL_GUARDED_BY(mutex_);
};

// Returns whether a failed read proves that the bytes are lost. Any other failure may pass: no file
// descriptor, a disk that fails now.
bool IsProvenLoss(const absl::Status& status);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_SPOOL_STORAGE_H_
