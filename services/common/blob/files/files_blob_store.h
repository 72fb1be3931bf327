// BlobStore on plain files.
//
//   <root>/staged/<id>       bytes that are still arriving
//   <root>/staged/<id>.log   what is known of them (chunk_log.h)
//   <root>/blobs/<folders of the name>/=<2 hex>/<last part>   published; fanned out by a hash
//
// Safe against the loss of power by these rules: sync the file before its name is published,
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
  std::string root;  // made if missing; must be owned by this process alone

  // Disk space that blobs leave alone, for the state store beside them. Never more than 5 % of the
  // file system counts.
  int64_t reserve_bytes = int64_t{2} << 30;

  // A staged file is synced when this many bytes were added since the last time.
  int64_t sync_every = int64_t{16} << 20;
};

// Opens the store. FAILED_PRECONDITION if another process has it open. `ops` must outlive it.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenFilesBlobStore(FilesBlobStoreOptions options,
                                                              FileOps& ops = PosixFileOps());

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_FILES_FILES_BLOB_STORE_H_
