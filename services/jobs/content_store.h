// The contents of files that deployments name: their rows in jobs.db, and their bytes. The bytes of
// a complete content are the published blob contents/SHA256, those of an upload a staged blob.
//
// The row of a content is written after its bytes were verified and are durable, and deleted before
// they are removed. So after a crash a published blob without a row is that of a complete upload,
// or of no use.
#ifndef MUSTER_SERVICES_JOBS_CONTENT_STORE_H_
#define MUSTER_SERVICES_JOBS_CONTENT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/common/templates/files.h"
#include "services/common/upload/upload_bytes.h"
#include "services/jobs/content_rows.h"
#include "services/jobs/content_targets.h"

namespace muster {

// The largest part of a content in one call.
inline constexpr size_t kMaxContentPart = size_t{512} << 10;
// How long a content is kept that no deployment names, and an upload without a call.
inline constexpr absl::Duration kContentKept = absl::Hours(24);

struct ContentLimits {
  int64_t quota = int64_t{20} << 30;   // bytes; one operator may use half of it
  int64_t max_contents = 100'000;      // with uploads
  size_t max_open = 64;                // uploads with open files; one operator may have half
  int64_t max_size = kMaxContentSize;  // of one content
};

// A part of an upload. A plain value.
struct ContentPart {
  ContentRow content;
  int64_t offset = 0;
  uint32_t crc32c = 0;  // of the data
  std::string data;     // at most kMaxContentPart; empty: asks for the progress
};

struct ContentProgress {
  int64_t offset = 0;  // the stored bytes survive the loss of the process
  bool stored = false;
};

struct ContentBytes {
  int64_t size = 0;  // of the whole content
  std::string data;  // empty at its end
};

// Thread-safe; calls wait for the disk. Uploads of different contents do not wait for each other.
class ContentStore {
 public:
  // Recovers the contents and uploads of an earlier process. `database` with the schema of
  // jobs_schema.h, and the other references, outlive the store.
  static absl::StatusOr<std::unique_ptr<ContentStore>> Open(sqlite::LocalDatabase& database,
                                                            const std::string& folder,
                                                            const ContentLimits& limits,
                                                            const Clock& clock,
                                                            FileOps& ops = PosixFileOps());

  // Returns those that are not stored, in the same order. The others are kept for kContentKept.
  absl::StatusOr<std::vector<std::string>> FindMissing(const std::vector<std::string>& digests);

  // Handles a part of an upload, as ContentService.UploadContent of contents.proto describes it.
  absl::StatusOr<ContentProgress> Upload(const ContentPart& part) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns at most `limit` bytes of a content that a deployment for this node names. NOT_FOUND
  // (CONTENT_NOT_FOUND), OUT_OF_RANGE (OFFSET_TOO_HIGH).
  absl::StatusOr<ContentBytes> Read(const std::string& deployment, const std::string& node,
                                    const std::string& sha256, int64_t offset, size_t limit);

  // Closes the files of idle uploads; removes expired uploads, and contents that are not needed any
  // more. To be called every few seconds.
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_, change_mutex_);

  ContentUsage Usage();

 private:
  // An upload with open files.
  struct Session {
    explicit Session(ContentUploadRow upload) : row(std::move(upload)) {}

    const ContentUploadRow row;
    Mutex mutex;
    std::unique_ptr<StagedBlob> staged ABSL_GUARDED_BY(mutex);  // null: not open
    UploadHash hash ABSL_GUARDED_BY(mutex);
    bool closed ABSL_GUARDED_BY(mutex) = false;     // it is not in sessions_ any more
    absl::Duration used_at ABSL_GUARDED_BY(mutex);  // monotonic
  };

  ContentStore(sqlite::LocalDatabase& database, std::unique_ptr<BlobStore> blobs,
               const ContentLimits& limits, const Clock& clock)
      : database_(database),
        blobs_(std::move(blobs)),
        limits_(limits),
        clock_(clock),
        targets_(database) {}

  absl::Status Recover();
  absl::Status CheckPart(const ContentPart& part) const;
  absl::StatusOr<std::shared_ptr<Session>> FindSession(const ContentUploadRow& row)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Admit(const ContentUploadRow& row);
  absl::StatusOr<ContentProgress> UploadTo(Session& session, const ContentPart& part)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex);
  absl::Status OpenStaged(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex);
  absl::StatusOr<ContentProgress> Complete(Session& session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex);
  void Close(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<bool> IsPublished(const ContentRow& content);
  // Returns whether the bytes of the upload are published, and then stores the content.
  absl::StatusOr<bool> StorePublished(const ContentUploadRow& row)
      ABSL_LOCKS_EXCLUDED(change_mutex_);
  absl::Status MakeStored(const ContentUploadRow& row);
  absl::Status RemoveUpload(const std::string& upload);
  absl::Status RemoveExpired(const ContentUploadRow& row, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status DiscardExpired(const ContentUploadRow& row, absl::Time now);
  absl::Status RemoveUnused(const std::string& sha256, absl::Time now)
      ABSL_LOCKS_EXCLUDED(change_mutex_);
  void CloseIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  sqlite::LocalDatabase& database_;
  const std::unique_ptr<BlobStore> blobs_;
  const ContentLimits limits_;
  const Clock& clock_;
  ContentTargets targets_;

  // Held while a content gets its blob and its row, or loses both. Sessions are locked before it.
  Mutex change_mutex_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);  // by upload
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_CONTENT_STORE_H_
