// The encrypted archives of the versions of workspaces: nodes save and read them. The archive of a
// version is the published blob workspaces/UPLOAD, that of an upload a staged blob.
//
// The row of a version is written after its archive was verified and is durable, and deleted before
// the archive is removed. So after a crash a published blob without a row is that of a complete
// upload, or of no use.
#ifndef MUSTER_SERVICES_JOBS_WORKSPACE_ARCHIVES_H_
#define MUSTER_SERVICES_JOBS_WORKSPACE_ARCHIVES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/workspaces.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/key_wrap.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/common/upload/upload_bytes.h"
#include "services/jobs/workspace_cipher.h"
#include "services/jobs/workspace_reader.h"
#include "services/jobs/workspace_rows.h"

namespace muster {

struct WorkspaceLimits {
  int64_t quota = int64_t{20} << 30;  // bytes of all versions and uploads
  size_t max_open = 64;               // uploads with open files
};

// Thread-safe; calls wait for the disk. Uploads of different workspaces do not wait for each other.
class WorkspaceArchives {
 public:
  // Recovers the archives of an earlier process. `database` with the schema of jobs_schema.h, and
  // the other references, outlive this.
  static absl::StatusOr<std::unique_ptr<WorkspaceArchives>> Open(
      sqlite::LocalDatabase& database, KeyWrap key_wrap, const std::string& folder,
      const WorkspaceLimits& limits, const Clock& clock, FileOps& ops = PosixFileOps());

  // SaveWorkspace of workspaces.proto. The caller has verified the signature of the report.
  absl::StatusOr<v1::SaveWorkspaceResponse> Save(const v1::SaveWorkspaceRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_, change_mutex_);

  // For reads of the stored versions; it lives as long as this.
  WorkspaceReader& reader() { return reader_; }

  // Closes the files of idle uploads, and removes uploads and archives of no more use. To be called
  // every few seconds.
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_, change_mutex_);

 private:
  // An upload with open files.
  struct Session {
    explicit Session(std::string workspace) : name(std::move(workspace)) {}

    const std::string name;
    Mutex mutex;
    WorkspaceUploadRow row ABSL_GUARDED_BY(mutex);
    std::unique_ptr<StagedBlob> staged ABSL_GUARDED_BY(mutex);  // null: not open
    std::unique_ptr<WorkspaceCipher> cipher ABSL_GUARDED_BY(mutex);
    UploadHash hash ABSL_GUARDED_BY(mutex);         // of the archive
    bool closed ABSL_GUARDED_BY(mutex) = false;     // it is not in sessions_ any more
    absl::Duration used_at ABSL_GUARDED_BY(mutex);  // monotonic
  };

  WorkspaceArchives(sqlite::LocalDatabase& database, KeyWrap key_wrap,
                    std::unique_ptr<BlobStore> blobs, const WorkspaceLimits& limits,
                    const Clock& clock)
      : database_(database),
        blobs_(std::move(blobs)),
        reader_(database, std::move(key_wrap), *blobs_),
        limits_(limits),
        clock_(clock) {}

  absl::Status Recover();
  // Returns whether the report needs no more parts: its version is stored, or it changes nothing.
  absl::StatusOr<bool> IsSaved(const v1::WorkspaceReport& report);
  absl::StatusOr<std::shared_ptr<Session>> FindSession(const std::string& name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::SaveWorkspaceResponse> SaveIn(Session& session,
                                                   const v1::SaveWorkspaceRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex);
  // Opens the files of the upload; returns true if its archive is published, and then stores it.
  absl::StatusOr<bool> OpenStaged(Session& session, const v1::WorkspaceReport& report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex) ABSL_LOCKS_EXCLUDED(change_mutex_);
  // Returns the upload of the report; a new one if there is none, or another one.
  absl::StatusOr<WorkspaceUploadRow> Admit(const v1::WorkspaceReport& report);
  absl::Status Append(Session& session, const v1::SaveWorkspaceRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex);
  absl::Status Verify(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex);
  absl::Status Complete(Session& session, const v1::WorkspaceReport& report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex) ABSL_LOCKS_EXCLUDED(change_mutex_);
  absl::Status Commit(const WorkspaceUploadRow& upload, const v1::WorkspaceReport& report);
  absl::Status Discard(const WorkspaceUploadRow& upload);
  void CloseIdle() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RemoveStale(const WorkspaceUploadRow& upload) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RemoveUnused() ABSL_LOCKS_EXCLUDED(change_mutex_);

  sqlite::LocalDatabase& database_;
  const std::unique_ptr<BlobStore> blobs_;
  WorkspaceReader reader_;
  const WorkspaceLimits limits_;
  const Clock& clock_;

  // Held while a version gets its blob and its row, and while blobs without rows are removed.
  // Sessions are locked before it.
  Mutex change_mutex_;
  std::set<std::string> published_ ABSL_GUARDED_BY(change_mutex_);  // names of blobs
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);  // by name
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_WORKSPACE_ARCHIVES_H_
