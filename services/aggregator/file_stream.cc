#include "services/aggregator/file_stream.h"

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/string_source.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

// The size of one message: large enough for speed, small enough for many readers.
constexpr size_t kReadChunk = 256 * 1024;

constexpr std::string_view kTooShort = "bytes are missing at the end";

// The properties that the bytes must have.
struct Expected {
  int64_t size = 0;
  std::optional<uint32_t> crc32c;                              // of the whole
  std::function<absl::Status(std::string_view damage)> error;  // what a reader gets otherwise
};

// Ends with an error, and not as if it were complete, if the stored bytes are not the expected
// ones. The checksum is compared if the stream begins at the begin.
class ChunkSource : public FileChunkSource {
 public:
  ChunkSource(std::unique_ptr<ByteSource> source, int64_t offset, Expected expected)
      : source_(std::move(source)), offset_(offset), expected_(std::move(expected)) {
    if (offset > 0) expected_.crc32c.reset();
  }

  absl::StatusOr<Pull> Next(v1::FileChunk* chunk) override {
    std::string* data = chunk->mutable_data();
    data->resize(kReadChunk);
    size_t filled = 0;
    while (filled < kReadChunk) {
      ASSIGN_OR_RETURN(const auto n, source_->Read(std::span(*data).subspan(filled)));
      if (n == 0) break;
      filled += n;
    }
    if (filled == 0) return End();
    data->resize(filled);
    chunk->set_offset(offset_);
    chunk->set_crc32c(Crc32c(*data));
    crc32c_ = ExtendCrc32c(crc32c_, *data);
    offset_ += static_cast<int64_t>(filled);
    if (offset_ > expected_.size) return expected_.error("more bytes are stored than committed");
    return Pull::kMessage;
  }

 private:
  absl::StatusOr<Pull> End() const {
    if (offset_ < expected_.size) return expected_.error(kTooShort);
    if (expected_.crc32c && *expected_.crc32c != crc32c_) {
      return expected_.error("the bytes are not the committed ones");
    }
    return Pull::kEnd;
  }

  const std::unique_ptr<ByteSource> source_;
  int64_t offset_;
  Expected expected_;
  uint32_t crc32c_ = 0;
};

class HoldingSource : public FileChunkSource {
 public:
  HoldingSource(std::unique_ptr<FileChunkSource> source, std::shared_ptr<void> hold)
      : hold_(std::move(hold)), source_(std::move(source)) {}

  absl::StatusOr<Pull> Next(v1::FileChunk* chunk) override { return source_->Next(chunk); }

 private:
  const std::shared_ptr<void> hold_;
  const std::unique_ptr<FileChunkSource> source_;
};

absl::Status CheckOffset(int64_t offset, int64_t size) {
  if (offset < 0) return errors::InvalidOffset(offset);
  return offset > size ? errors::OffsetTooHigh(offset, size) : absl::OkStatus();
}

// `offset` is within the committed bytes, so a blob that cannot be opened there is damaged.
absl::StatusOr<std::unique_ptr<FileChunkSource>> Stream(
    absl::StatusOr<std::unique_ptr<ByteSource>> source, int64_t offset, Expected expected) {
  if (absl::IsNotFound(source.status())) return expected.error("its file is missing");
  if (absl::IsOutOfRange(source.status())) return expected.error(kTooShort);
  RETURN_IF_ERROR(source.status());
  return std::make_unique<ChunkSource>(*std::move(source), offset, std::move(expected));
}

}  // namespace

absl::StatusOr<ResultRecord> FindResult(StateStore& store, const ResultKey& key) {
  ASSIGN_OR_RETURN(auto result, store.GetResult(key));
  if (result) return *std::move(result);
  ASSIGN_OR_RETURN(const auto run, store.GetRun(key.run));
  if (!run) return errors::RunNotFound(key.run);
  return errors::PairNotPlanned(key.run, key.plugin, key.node);
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenResult(BlobStore& blobs, ResultRecord result,
                                                       int64_t offset) {
  if (!result.blob.empty()) return blobs.Open(result.blob, offset);
  return std::make_unique<StringSource>(std::move(result.body), static_cast<size_t>(offset));
}

absl::StatusOr<std::unique_ptr<FileChunkSource>> StreamResult(BlobStore& blobs, ResultRecord result,
                                                              int64_t offset) {
  Expected expected;
  expected.size = result.size;
  expected.crc32c = result.crc32c;
  expected.error = [key = result.key](std::string_view damage) {
    return errors::ResultDamaged(key.plugin, key.node, damage);
  };
  RETURN_IF_ERROR(CheckOffset(offset, result.size));
  return Stream(OpenResult(blobs, std::move(result), offset), offset, std::move(expected));
}

std::unique_ptr<FileChunkSource> WithHold(std::unique_ptr<FileChunkSource> source,
                                          std::shared_ptr<void> hold) {
  return std::make_unique<HoldingSource>(std::move(source), std::move(hold));
}

absl::StatusOr<std::unique_ptr<FileChunkSource>> StreamArchive(BlobStore& blobs,
                                                               const std::string& run,
                                                               const ArchiveRecord& archive,
                                                               int64_t offset) {
  RETURN_IF_ERROR(CheckOffset(offset, archive.size));
  Expected expected;
  expected.size = archive.size;
  expected.error = [run](std::string_view damage) { return errors::ArchiveDamaged(run, damage); };
  return Stream(blobs.Open(archive.blob, offset), offset, std::move(expected));
}

}  // namespace muster
