#include "services/aggregator/file_stream.h"

#include <span>
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

class ChunkSource : public FileChunkSource {
 public:
  ChunkSource(std::unique_ptr<ByteSource> source, int64_t offset)
      : source_(std::move(source)), offset_(offset) {}

  absl::StatusOr<Pull> Next(v1::FileChunk* chunk) override {
    std::string* data = chunk->mutable_data();
    data->resize(kReadChunk);
    size_t filled = 0;
    while (filled < kReadChunk) {
      ASSIGN_OR_RETURN(const auto n, source_->Read(std::span(*data).subspan(filled)));
      if (n == 0) break;
      filled += n;
    }
    if (filled == 0) return Pull::kEnd;
    data->resize(filled);
    chunk->set_offset(offset_);
    chunk->set_crc32c(Crc32c(*data));
    offset_ += static_cast<int64_t>(filled);
    return Pull::kMessage;
  }

 private:
  const std::unique_ptr<ByteSource> source_;
  int64_t offset_;
};

absl::Status CheckOffset(int64_t offset, int64_t size) {
  if (offset < 0) return errors::InvalidOffset(offset);
  return offset > size ? errors::OffsetTooHigh(offset, size) : absl::OkStatus();
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
  RETURN_IF_ERROR(CheckOffset(offset, result.size));
  if (!result.blob.empty()) return blobs.Open(result.blob, offset);
  return std::make_unique<StringSource>(std::move(result.body), static_cast<size_t>(offset));
}

absl::StatusOr<std::unique_ptr<FileChunkSource>> StreamResult(BlobStore& blobs, ResultRecord result,
                                                              int64_t offset) {
  ASSIGN_OR_RETURN(auto source, OpenResult(blobs, std::move(result), offset));
  return std::make_unique<ChunkSource>(std::move(source), offset);
}

absl::StatusOr<std::unique_ptr<FileChunkSource>> StreamBlob(BlobStore& blobs,
                                                            const std::string& name, int64_t size,
                                                            int64_t offset) {
  RETURN_IF_ERROR(CheckOffset(offset, size));
  ASSIGN_OR_RETURN(auto source, blobs.Open(name, offset));
  return std::make_unique<ChunkSource>(std::move(source), offset);
}

}  // namespace muster
