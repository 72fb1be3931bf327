// The stored versions of workspaces, decrypted.
#ifndef MUSTER_SERVICES_JOBS_WORKSPACE_READER_H_
#define MUSTER_SERVICES_JOBS_WORKSPACE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/key_wrap.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/jobs/content_store.h"
#include "services/jobs/workspace_cipher.h"

namespace muster {

// The folder of the archives in the blob store.
inline constexpr char kWorkspaceBlobs[] = "workspaces/";

// Returns the name of the blob with the archive of this upload.
std::string WorkspaceBlob(const std::string& upload);

// Thread-safe; calls wait for the disk.
class WorkspaceReader {
 public:
  // `database` with the schema of jobs_schema.h, and `blobs`, outlive this.
  WorkspaceReader(sqlite::LocalDatabase& database, KeyWrap key_wrap, BlobStore& blobs)
      : database_(database), key_wrap_(std::move(key_wrap)), blobs_(blobs) {}

  // Returns bytes of the archive that the command of a deployment for this node names, at most one
  // part. NOT_FOUND (CONTENT_NOT_FOUND), OUT_OF_RANGE (OFFSET_TOO_HIGH), DATA_LOSS
  // (WORKSPACE_DAMAGED).
  absl::StatusOr<ContentBytes> Read(const std::string& deployment, const std::string& node,
                                    const std::string& sha256, int64_t offset, size_t limit);

  // Returns the cipher of an archive of this size, with the key of the workspace.
  absl::StatusOr<std::unique_ptr<WorkspaceCipher>> CipherOf(const std::string& workspace,
                                                            const std::string& upload,
                                                            int64_t size) const;

  // Returns a new key for this workspace, wrapped.
  absl::StatusOr<std::string> WrapNewKey(const std::string& workspace) const;

 private:
  sqlite::LocalDatabase& database_;
  const KeyWrap key_wrap_;
  BlobStore& blobs_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_WORKSPACE_READER_H_
