// Where the bytes of results and archives rest.
//
// A blob is written as a staged file that grows at its end and survives the process, then published
// under its final name, once, durably. Names are made by us ([a-z0-9/._-], at most 200 bytes,
// never ".." or a leading "/"): nothing a client sends is ever part of one.
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

// A blob that is still being written. Not thread-safe: one owner at a time. Closing it
// (destruction) keeps what was written, for a later Resume.
class StagedBlob {
 public:
  virtual ~StagedBlob() = default;

  // Bytes accepted so far; they survive the loss of the process.
  virtual int64_t written() const = 0;

  // Bytes that also survive the loss of power. Never above written(), never falls.
  virtual int64_t durable() const = 0;

  // CRC32C of all bytes accepted so far.
  virtual uint32_t crc32c() const = 0;

  // Adds `data` at the end. `crc32c` is the checksum of `data` that was verified by the caller; it
  // is kept beside the bytes, so that a resume trusts only what it can verify. The driver syncs
  // every few MiB by itself. RESOURCE_EXHAUSTED with reason DISK_FULL leaves what was accepted
  // before intact; any other failure makes the object unusable (a failed sync is never repeated).
  virtual absl::Status Append(std::string_view data, uint32_t crc32c) = 0;

  // Makes everything accepted durable now.
  virtual absl::Status Sync() = 0;

  // What was accepted so far, from `offset` on: to hash it again after a resume, or to compare what
  // is sent twice. OUT_OF_RANGE beyond written().
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> Read(int64_t offset) = 0;

  // Makes the bytes durable and publishes them as `name`; the staged file is gone after that.
  // Success if a blob of this name and size is there already (a repeated publish after a crash);
  // ALREADY_EXISTS if one of another size is.
  virtual absl::Status Publish(std::string_view name) = 0;

  // Removes the staged bytes.
  virtual absl::Status Discard() = 0;
};

// Thread-safe. Every call may wait for the disk.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // A new staged blob `id` ([a-z0-9]{1,64}), never used before. `expected_size` (-1: unknown) is
  // reserved on the disk at once, so that a full disk is refused early. ALREADY_EXISTS if it is
  // there.
  virtual absl::StatusOr<std::unique_ptr<StagedBlob>> Stage(std::string_view id,
                                                            int64_t expected_size) = 0;

  // An existing staged blob: the bytes whose checksums hold are kept, the rest is cut off.
  // NOT_FOUND if there is none: also if a crash came right after its publish, so a caller that
  // published under a name of its own looks for that name (Size) before it begins anew. The earlier
  // owner's object must have been destroyed.
  virtual absl::StatusOr<std::unique_ptr<StagedBlob>> Resume(std::string_view id) = 0;

  // Removes a staged blob that nobody will resume, without reading it. Success also if it is not
  // there. The owner's object must have been destroyed.
  virtual absl::Status DiscardStaged(std::string_view id) = 0;

  // Reads a published blob from `offset` to its end. NOT_FOUND, or OUT_OF_RANGE beyond its size.
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> Open(std::string_view name,
                                                           int64_t offset) = 0;

  virtual absl::StatusOr<int64_t> Size(std::string_view name) = 0;

  // Success also if it is not there.
  virtual absl::Status Remove(std::string_view name) = 0;

  // Removes every published blob below `prefix` ("runs/<id>/").
  virtual absl::Status RemoveAll(std::string_view prefix) = 0;

  // Staged blobs, for the sweep at start: ids that no upload knows go to DiscardStaged. A crash
  // right after a publish can leave both names: DiscardStaged never harms the published blob.
  virtual absl::StatusOr<std::vector<std::string>> ListStaged() = 0;

  // Returns the names of all published blobs, in no order: a start removes those that no record
  // names.
  virtual absl::StatusOr<std::vector<std::string>> ListPublished() = 0;

  // Free bytes that new blobs may take: what the file system has less the reserve kept for state.
  virtual absl::StatusOr<int64_t> Available() = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_BLOB_STORE_H_
