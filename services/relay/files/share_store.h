// The shared files that are at this relay: their bytes, and what is known of those that were here.
//
//   <folder>/records/<id>   one small file for each (share_record.h), replaced as a whole
//   <folder>/blobs/         the bytes (common/blob/files)
//
// A record that says its bytes are here is written after they are durable, and one that says they
// are not before they are removed: a kill at any point loses nothing that was answered.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/io.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/relay/files/share_record.h"
#include "services/relay/files/share_upload.h"

namespace muster {

struct ShareStoreOptions {
  std::string folder;  // made if missing
  std::string relay;   // our name
  int64_t quota = int64_t{10} << 30;
  int64_t max_files = 10'000;  // those that are only remembered included
  int64_t max_size = int64_t{4} << 30;
};

// Thread-safe. Everything waits for the disk, but what only looks: Find, List and Select.
class ShareStore {
 public:
  // Takes over what an earlier life left.
  static absl::StatusOr<std::unique_ptr<ShareStore>> Open(ShareStoreOptions options,
                                                          const Clock& clock, Metrics& metrics,
                                                          FileOps& ops = PosixFileOps());
  ~ShareStore();

  struct Opened {
    // Set if the same bytes are here already: nothing is to be sent.
    std::optional<ShareRecord> existing;
    std::shared_ptr<ShareUpload> upload;
    int64_t epoch = 0;
    int64_t offset = 0;
  };
  // Begins or takes over the upload of a file whose signature was checked. `opener` may send it.
  // SHARE_EXPIRED, SHARE_SUPERSEDED, SHARE_TOO_LARGE, SHARE_QUOTA, TOO_MANY_UPLOADS.
  absl::StatusOr<Opened> OpenUpload(const v1::SharedFile& file, bool from_parent,
                                    const std::string& opener);
  // UPLOAD_NOT_FOUND; also if another opened it.
  absl::StatusOr<std::shared_ptr<ShareUpload>> FindUpload(const std::string& id,
                                                          const std::string& opener) const;
  // All of it has arrived: checks it, and from here on it is held, in the place of what had its key
  // before. A file that is not what was signed is dropped.
  absl::StatusOr<ShareRecord> Complete(ShareUpload& upload, int64_t epoch);

  // As it is now: expired if its time is over. Without signature and certificates. Nothing if
  // nothing of this key is here but bytes that are still arriving.
  std::optional<ShareRecord> Find(const v1::ShareKey& key) const;
  // What the source signed, whole.
  absl::StatusOr<v1::SharedFile> ReadFile(const ShareRecord& record) const;
  // The bytes of a held one.
  absl::StatusOr<std::unique_ptr<ByteSource>> Read(const ShareRecord& record, int64_t offset) const;

  // Those that `wanted` picks, in order of their keys, after `after`.
  using Pick = std::function<bool(const ShareRecord&)>;
  std::vector<ShareRecord> Select(const ShareName& after, size_t limit, const Pick& wanted) const;

  // Changes what is known of a file, unless it was replaced or changed meanwhile: the bytes go when
  // it is not held any more.
  absl::Status Update(const ShareRecord& was, ShareRecord is);
  // Ends an upload that is under way.
  void DropUpload(const v1::ShareKey& key);

  // Ends what has expired, forgets uploads that nobody goes on with, and what ended a week ago. To
  // be called every few seconds.
  void Sweep();

  int64_t files() const;
  int64_t bytes() const;
  v1::ShareUsage Usage() const;

 private:
  struct Slot {
    std::shared_ptr<const ShareRecord> current;
    std::shared_ptr<ShareUpload> incoming;
    absl::Time touched;   // when the upload moved last, as far as was seen
    uint64_t chunks = 0;  // it had then
  };
  struct Figures;

  ShareStore(ShareStoreOptions options, std::unique_ptr<BlobStore> blobs, const Clock& clock,
             Metrics& metrics, FileOps& ops);

  // Recovery runs before the store is shared.
  absl::Status Recover() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Adds the name of a file that cannot be read now to `unread`: it stays for the next start.
  absl::Status RecoverRecord(const std::string& file,
                             std::set<std::string>* unread) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  absl::StatusOr<ShareRecord> ReadRecord(const std::string& file) const;
  absl::Status RecoverHeld(ShareRecord& record) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  std::string PathOf(const std::string& id) const;
  absl::Status Write(const ShareRecord& record) const;
  void RemoveFiles(const ShareRecord& record) const;
  ShareRecord AsOfNow(const ShareRecord& record) const;
  void Put(const ShareRecord& record) ABSL_LOCKS_EXCLUDED(mutex_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  void Erase(const ShareRecord& record) ABSL_LOCKS_EXCLUDED(mutex_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  void DropIdle(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Measure() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoom(const v1::SharedFile& file) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<ShareRecord> FindSameContent(const v1::SharedFile& file, bool from_parent,
                                             const std::string& opener)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  absl::StatusOr<std::shared_ptr<ShareUpload>> Admit(const v1::SharedFile& file, bool from_parent,
                                                     const std::string& opener)
      ABSL_LOCKS_EXCLUDED(mutex_) ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  absl::StatusOr<ShareRecord> MakeHeld(const ShareUpload& upload) ABSL_LOCKS_EXCLUDED(mutex_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  std::shared_ptr<ShareUpload> RemoveIncoming(const ShareName& name) ABSL_LOCKS_EXCLUDED(mutex_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);
  absl::Status UpdateLocked(const ShareRecord& was, ShareRecord is) ABSL_LOCKS_EXCLUDED(mutex_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_);

  const ShareStoreOptions options_;
  const std::unique_ptr<BlobStore> blobs_;
  const Clock& clock_;
  FileOps& ops_;
  const std::unique_ptr<Figures> figures_;

  // Held over each change and its way to the disk.
  Mutex change_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  std::map<ShareName, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  // By id.
  std::unordered_map<std::string, std::shared_ptr<ShareUpload>> uploads_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_order_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // held, and of uploads what they will take
  int64_t files_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_H_
