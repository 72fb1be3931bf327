// One staged blob on disk: its file and its log (staged_file_log.h).
#ifndef MUSTER_SERVICES_COMMON_BLOB_FILES_STAGED_FILE_H_
#define MUSTER_SERVICES_COMMON_BLOB_FILES_STAGED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "services/common/base/file_ops.h"
#include "services/common/blob/blob_store.h"
#include "services/common/blob/files/staged_file_log.h"

namespace muster {

// The functions of the store that a staged file needs. Thread-safe; outlives the file.
class StagedFileHost {
 public:
  virtual ~StagedFileHost() = default;

  virtual FileOps& ops() = 0;
  virtual std::string StagedFolder() const = 0;
  virtual int64_t sync_every() const = 0;

  // Returns OK if blobs may take `more` bytes of the disk.
  virtual absl::Status CheckSpace(int64_t more) = 0;

  // Creates the folders for a blob of this name, durably; returns the blob's path.
  virtual absl::StatusOr<std::string> PrepareFolders(std::string_view name) = 0;
};

// Not thread-safe.
class StagedFile final : public StagedBlob {
 public:
  static absl::StatusOr<std::unique_ptr<StagedBlob>> Create(StagedFileHost& host,
                                                            std::string_view id,
                                                            int64_t expected_size);
  static absl::StatusOr<std::unique_ptr<StagedBlob>> Resume(StagedFileHost& host,
                                                            std::string_view id);
  static absl::Status Remove(StagedFileHost& host, std::string_view id);

  static std::string DataPath(const StagedFileHost& host, std::string_view id);
  static std::string LogPath(const StagedFileHost& host, std::string_view id);

  ~StagedFile() override;

  int64_t written() const override { return written_; }
  int64_t durable() const override { return durable_; }
  uint32_t crc32c() const override { return crc32c_; }
  absl::Status Append(std::string_view data, uint32_t crc32c) override;
  absl::Status Sync() override;
  absl::Status Truncate(int64_t size, uint32_t crc32c) override;
  absl::StatusOr<std::unique_ptr<ByteSource>> Read(int64_t offset) override;
  absl::Status Publish(std::string_view name) override;
  absl::Status Discard() override;

 private:
  StagedFile(StagedFileHost& host, std::string_view id) : host_(host), id_(id) {}

  absl::Status Begin(int64_t expected_size);
  absl::Status Recover();
  absl::Status RecoverRange(const ChunkRecord& range, bool& holds);
  absl::Status Usable() const;
  absl::Status Break(const absl::Status& cause);
  absl::Status Write(std::string_view data, uint32_t crc32c);
  absl::Status SyncNow();
  absl::Status ReduceMarks(int64_t size, uint32_t crc32c);
  absl::Status Seal();
  absl::Status MoveTo(const std::string& path);

  StagedFileHost& host_;
  const std::string id_;
  std::shared_ptr<File> data_;  // shared with readers
  std::unique_ptr<File> log_;
  int64_t ranges_ = 0;          // in the log, after the newest mark
  int mark_place_ = 1;          // of the newest mark
  int64_t expected_size_ = -1;  // of a new file, if it is known
  int64_t reserved_ = 0;
  int64_t written_ = 0;
  int64_t durable_ = 0;
  int64_t writeback_ = 0;  // the kernel was asked to write the bytes before it
  uint32_t crc32c_ = 0;
  bool names_durable_ = false;
  bool broken_ = false;
};

// Returns a source that reads a file from `offset` up to `end`.
std::unique_ptr<ByteSource> MakeFileSource(std::shared_ptr<File> file, int64_t offset, int64_t end);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_FILES_STAGED_FILE_H_
