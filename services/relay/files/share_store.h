// The shared files of this relay: their bytes, and the records of present and earlier files.
//
//   <folder>/shares.db   a row for each file, and the bytes of files up to 64 KiB (share_table.h)
//   <folder>/blobs/      the bytes of uploads and of larger files (common/blob/files).
//
// The row of a held file is written after its bytes are durable. Before bytes are removed, their
// row is removed or states that the file is not held. A start removes bytes without a row; a row
// without its bytes becomes a refusal.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/io.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/upload/upload_session.h"
#include "services/relay/files/share_record.h"
#include "services/relay/files/share_records.h"
#include "services/relay/files/share_table.h"

namespace muster {

struct ShareCounters;

struct ShareStoreOptions {
  std::string folder;  // created if missing
  std::string relay;   // the name of this relay
  int64_t quota = int64_t{10} << 30;
  int64_t max_files = 10'000;
  int64_t max_size = int64_t{4} << 30;
  // The database failed: the relay must end (local_database.h).
  std::function<void(const absl::Status&)> on_fatal = {};
};

// Thread-safe. Calls wait for the disk, except Find, FindUpload, Select, Usage, files and bytes.
//
// ShareTable owns the rows, ShareRecords the records in memory, and the upload engine the arriving
// bytes. This class keeps them consistent: its mutex orders the changes, and is held while they are
// written. The session of an upload runs on `disk`.
class ShareStore : public ResultSink {
 public:
  // Recovers the files of an earlier process. DATA_LOSS (STORE_CORRUPT) if the database is damaged.
  static absl::StatusOr<std::unique_ptr<ShareStore>> Open(ShareStoreOptions options, Executor& disk,
                                                          const Clock& clock, Metrics& metrics,
                                                          FileOps& ops = PosixFileOps());
  // `disk` is drained.
  ~ShareStore() override;

  struct Opened {
    // Set if this relay or a child relay has the same content: nothing is sent.
    std::optional<ShareRecord> existing;
    std::string upload_id;
    int64_t epoch = 0;
    int64_t offset = 0;
  };
  using OpenDone = absl::AnyInvocable<void(absl::StatusOr<Opened>)>;
  // Opens or takes over the upload of a file whose signature was verified; `opener` may send it.
  // SHARE_EXPIRED, SHARE_SUPERSEDED, SHARE_ARRIVING, SHARE_TOO_LARGE, SHARE_QUOTA,
  // TOO_MANY_UPLOADS. Calls `done` once, on `disk` or on the calling thread.
  void OpenUpload(v1::SharedFile file, bool from_parent, const std::string& opener, OpenDone done);

  // Returns the session of an upload. UPLOAD_NOT_FOUND; also if another sender opened it.
  absl::StatusOr<std::shared_ptr<UploadSession>> FindUpload(const std::string& id,
                                                            const std::string& opener) const;

  using CompleteDone = absl::AnyInvocable<void(absl::StatusOr<v1::Share>)>;
  // Verifies size and hash and stores the file in place of the earlier one of its key. Removes an
  // upload with other content than was signed. Runs on the strand of the session.
  void Complete(UploadSession& session, const UploadAttachment& attachment, CompleteDone done);

  // ResultSink: called by the sessions.
  absl::Status CheckSignature(const VerifiedResult& verified) const override;
  absl::Status Reserve(std::string_view id, int64_t size) override;
  void Commit(VerifiedResult verified, Done done) override;

  // Receives a file: `read` passes its bytes from an offset on to a sink. Waits for all of them.
  using Sink = absl::FunctionRef<absl::Status(std::string_view piece)>;
  using ReadFrom = absl::FunctionRef<absl::Status(int64_t offset, Sink sink)>;
  absl::Status Receive(const v1::SharedFile& file, bool from_parent, const std::string& opener,
                       ReadFrom read);

  // Returns the record, as expired after its expiry, without signature and certificates. Returns
  // nothing for a key without a present or earlier file.
  std::optional<ShareRecord> Find(const v1::ShareKey& key) const { return records_.Find(key); }
  // Returns the file as it was signed.
  absl::StatusOr<v1::SharedFile> ReadFile(const ShareRecord& record) const;
  // Returns the bytes of a held file.
  absl::StatusOr<std::unique_ptr<ByteSource>> Read(const ShareRecord& record, int64_t offset) const;

  // Returns the wanted records in order of their keys, after `after`.
  std::vector<ShareRecord> Select(const ShareName& after, size_t limit,
                                  const ShareRecords::Pick& wanted) const {
    return records_.Select(after, limit, wanted);
  }

  // Replaces the record `before`; its bytes are removed if `after` has none. ABORTED if it changed
  // meanwhile.
  absl::Status Update(const ShareRecord& before, ShareRecord after);
  // Removes the upload of a key.
  void DropUpload(const v1::ShareKey& key);

  // Removes expired files, idle uploads, and the records of files that ended a week ago. Ends
  // stalled streams, and closes the files of uploads without a stream. Call it every few seconds.
  void Sweep();

  int64_t files() const { return records_.usage().files; }
  int64_t bytes() const { return records_.usage().bytes; }
  v1::ShareUsage Usage() const;

 private:
  ShareStore(ShareStoreOptions options, std::unique_ptr<ShareTable> table,
             std::unique_ptr<BlobStore> blobs, Executor& disk, const Clock& clock,
             Metrics& metrics);

  static UploadRecord ToUpload(const ShareUpload& upload);
  absl::Status Recover() ABSL_LOCKS_EXCLUDED(change_mutex_);
  absl::Status RecoverRow(ShareTable::Row row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  absl::Status RecoverHeld(ShareTable::Row& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  absl::Status RemoveUnknownBytes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  void AddUpload(const ShareRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  void DropLocked(const v1::ShareKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  absl::Status Forget(const ShareRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  std::optional<ShareRecord> FindSameContent(const v1::SharedFile& file, bool from_parent,
                                             const std::string& opener)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  absl::StatusOr<ShareUpload> Admit(const v1::SharedFile& file, bool from_parent,
                                    const std::string& opener)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  absl::Status MakeHeld(const VerifiedResult& verified)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  absl::Status UpdateLocked(const ShareRecord& before, const ShareRecord& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);

  const ShareStoreOptions options_;
  const std::unique_ptr<ShareTable> table_;
  const std::unique_ptr<BlobStore> blobs_;
  Executor& disk_;
  const Clock& clock_;
  const std::unique_ptr<ShareCounters> counters_;

  Mutex change_mutex_;
  ShareRecords records_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_H_
