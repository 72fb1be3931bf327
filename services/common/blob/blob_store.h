// Durable storage for the bytes of results and archives.
//
// A blob is written as a staged file that grows at its end and survives the process. It is then
// published once, durably, under its final name. Muster generates the names ([a-z0-9/._-], at most
// 200 bytes, never ".." or a leading "/"): they contain no text of a client.
#ifndef MUSTER_SERVICES_COMMON_BLOB_BLOB_STORE_H_
#define MUSTER_SERVICES_COMMON_BLOB_BLOB_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/io.h"

namespace muster {

// A blob that is being written. Not thread-safe: one owner at a time. Destruction keeps the written
// bytes for a later Resume.
class StagedBlob {
 public:
  virtual ~StagedBlob() = default;

  // The number of accepted bytes; they survive the loss of the process.
  virtual int64_t written() const = 0;

  // The number of bytes that also survive the loss of power. Never exceeds written(); only Truncate
  // decreases it.
  virtual int64_t durable() const = 0;

  // CRC32C of all accepted bytes.
  virtual uint32_t crc32c() const = 0;

  // Appends `data`. `crc32c` is its checksum, which the caller verified; it is stored with the
  // bytes, so that a resume keeps only verified bytes. The driver syncs every few MiB.
  // RESOURCE_EXHAUSTED (DISK_FULL) keeps all accepted bytes intact; after any other failure the
  // object is unusable, because a failed sync is never repeated.
  virtual absl::Status Append(std::string_view data, uint32_t crc32c) = 0;

  // Makes all accepted bytes durable.
  virtual absl::Status Sync() = 0;

  // Removes the accepted bytes after the first `size`, whose checksum is `crc32c`, and makes the
  // others durable: no crash afterwards brings the removed ones back. OUT_OF_RANGE beyond
  // written().
  virtual absl::Status Truncate(int64_t size, uint32_t crc32c) = 0;

  // Reads the accepted bytes from `offset` on, to hash them after a resume or to compare repeated
  // bytes. Fails with OUT_OF_RANGE beyond written().
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> Read(int64_t offset) = 0;

  // Makes the bytes durable and publishes them as `name`; the staged file no longer exists
  // afterwards. Succeeds if a blob of this name and size already exists (a repeated publish after a
  // crash); fails with ALREADY_EXISTS if its size differs.
  virtual absl::Status Publish(std::string_view name) = 0;

  // Removes the staged bytes.
  virtual absl::Status Discard() = 0;
};

// Thread-safe. Every call may wait for the disk.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Creates a staged blob `id` ([a-z0-9]{1,64}), which was never used before. `expected_size` (-1:
  // unknown) must be free on the disk, so that a full disk is reported early; space is reserved as
  // bytes come. Fails with ALREADY_EXISTS.
  virtual absl::StatusOr<std::unique_ptr<StagedBlob>> Stage(std::string_view id,
                                                            int64_t expected_size) = 0;

  // Opens an existing staged blob: keeps the bytes with matching checksums and discards the rest.
  // Fails with NOT_FOUND if it does not exist, also after a crash directly after its publication:
  // the caller then looks for the published name (Size, SyncName) before it starts again. The
  // earlier owner's object must be destroyed.
  virtual absl::StatusOr<std::unique_ptr<StagedBlob>> Resume(std::string_view id) = 0;

  // Returns the bytes that a staged blob occupies, without reading it: after a crash more than were
  // written. NOT_FOUND.
  virtual absl::StatusOr<int64_t> StagedSize(std::string_view id) = 0;

  // Removes a staged blob without reading it. Succeeds if it does not exist. The owner's object
  // must be destroyed.
  virtual absl::Status DiscardStaged(std::string_view id) = 0;

  // Reads a published blob from `offset` to its end. Fails with NOT_FOUND, or OUT_OF_RANGE beyond
  // its size.
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> Open(std::string_view name,
                                                           int64_t offset) = 0;

  // Returns the size of a published blob; NOT_FOUND.
  virtual absl::StatusOr<int64_t> Size(std::string_view name) = 0;

  // Makes the name of a published blob durable, also if the process was lost during its
  // publication: a record may name it after that.
  virtual absl::Status SyncName(std::string_view name) = 0;

  // Succeeds if the blob does not exist.
  virtual absl::Status Remove(std::string_view name) = 0;

  // Removes every published blob whose name begins with `prefix` ("runs/<id>/").
  virtual absl::Status RemoveAll(std::string_view prefix) = 0;

  // Lists the staged blobs. At the start, those without an upload are passed to DiscardStaged.
  // After a crash directly after a publication both names may exist: DiscardStaged never removes
  // the published blob.
  virtual absl::StatusOr<std::vector<std::string>> ListStaged() = 0;

  // Returns the names of the published blobs below `prefix` ("": all; "runs/<id>/"), in no order.
  // Blobs that are published or removed meanwhile may be among them.
  virtual absl::StatusOr<std::vector<std::string>> ListBelow(std::string_view prefix) = 0;
  absl::StatusOr<std::vector<std::string>> ListPublished() { return ListBelow(""); }

  // Returns the parts of names that follow `prefix` ("runs/") and end at the next '/', in no order.
  // A folder may be empty by now.
  virtual absl::StatusOr<std::vector<std::string>> ListFolders(std::string_view prefix) = 0;

  // Returns the free bytes for new blobs: those of the file system without the reserve for state.
  virtual absl::StatusOr<int64_t> Available() = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_BLOB_STORE_H_
