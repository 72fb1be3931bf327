// BlobStore in files.
//
//   <root>/staged/<id>       bytes of unfinished blobs
//   <root>/staged/<id>.log   the trusted ranges of them (staged_file_log.h)
//   <root>/blobs/<folders of the name>/=<2 hex>/<last part>   published; distributed by a hash
//
// These rules protect against the loss of power: sync the file before its name is published,
// publish by a rename that replaces nothing, sync the folder after it and the parents of new
// folders, never repeat a failed sync.
#ifndef MUSTER_SERVICES_COMMON_BLOB_FILES_FILES_BLOB_STORE_H_
#define MUSTER_SERVICES_COMMON_BLOB_FILES_FILES_BLOB_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/common/blob/blob_store.h"

namespace muster {

struct FilesBlobStoreOptions {
  std::string root;  // created if it does not exist; used by this process alone

  // Disk space that remains for the state store. At most 5 % of the file system.
  int64_t reserve_bytes = int64_t{2} << 30;

  // A staged file is synced after this many new bytes.
  int64_t sync_every = int64_t{16} << 20;
};

// Opens the store. Fails with FAILED_PRECONDITION if another process has opened it. `ops` must
// outlive it.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenFilesBlobStore(FilesBlobStoreOptions options,
                                                              FileOps& ops = PosixFileOps());

// Returns true if a blob was ever published in the store of folder `root`, which need not be open.
absl::StatusOr<bool> HasHadBlobs(FileOps& ops, const std::string& root);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_FILES_FILES_BLOB_STORE_H_
