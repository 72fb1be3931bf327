// The bytes of one shared file as they arrive.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/sha256.h"
#include "services/common/blob/blob_store.h"
#include "services/relay/files/share_record.h"

namespace muster {

// Whoever opened it last may add to it. Thread-safe; what waits for the disk says so.
class ShareUpload {
 public:
  // `blobs` outlives it.
  ShareUpload(ShareRecord record, BlobStore& blobs)
      : blobs_(blobs),
        id_(record.id),
        size_(record.share.file().size()),
        sha256_(record.share.file().sha256()),
        source_(record.key().source()),
        record_(std::move(record)) {}

  // Removes the bytes if it was dropped; waits for the disk.
  ~ShareUpload();

  ShareUpload(const ShareUpload&) = delete;
  ShareUpload& operator=(const ShareUpload&) = delete;

  const std::string& id() const { return id_; }
  int64_t size() const { return size_; }
  const std::string& source() const { return source_; }
  // Rises with each chunk.
  uint64_t chunks() const { return chunks_; }

  ShareRecord record() const {
    MutexLock lock(record_mutex_);
    return record_;
  }
  // The same content, signed anew.
  void SetRecord(ShareRecord record) {
    MutexLock lock(record_mutex_);
    record_ = std::move(record);
  }

  // Makes what an earlier owner of the same content may not add to any more.
  int64_t TakeOver() { return ++epoch_; }
  // The bytes go with this object.
  void Drop() { dropped_ = true; }

  // Finds out where to go on, reading what is there already after a restart; waits for the disk.
  absl::StatusOr<int64_t> Ready();
  // Adds a chunk; waits for the disk. TAKEN_OVER, INVALID_CHUNK, OFFSET_TOO_HIGH, CRC_MISMATCH,
  // SIZE_MISMATCH, DISK_FULL.
  absl::Status Append(int64_t epoch, int64_t offset, std::string_view data, uint32_t crc32c);
  // Checks size and hash, makes it durable and gives it its name; waits for the disk. TAKEN_OVER,
  // SIZE_MISMATCH, DIGEST_MISMATCH.
  absl::Status Publish(int64_t epoch);
  bool published() const { return published_; }

 private:
  std::string Blob() const { return record().blob(); }
  absl::Status CheckOwner(int64_t epoch) const;
  absl::Status Rehash() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  BlobStore& blobs_;
  const std::string id_;
  const int64_t size_;
  const std::string sha256_;
  const std::string source_;
  std::atomic<uint64_t> chunks_ = 0;
  mutable Mutex record_mutex_;
  ShareRecord record_ ABSL_GUARDED_BY(record_mutex_);
  std::atomic<int64_t> epoch_ = 0;
  std::atomic<bool> dropped_ = false;
  std::atomic<bool> published_ = false;
  Mutex mutex_;
  std::unique_ptr<StagedBlob> blob_ ABSL_GUARDED_BY(mutex_);
  Sha256 hash_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_H_
