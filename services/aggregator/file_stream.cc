#include "services/aggregator/file_stream.h"

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "services/common/base/crc32c.h"
#include "services/common/base/log.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/string_source.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

// The size of one message: large enough for speed, small enough for many readers.
constexpr size_t kReadChunk = 256 * 1024;

// The properties that the bytes must have. The checksums are those of the whole.
struct Expected {
  int64_t size = 0;
  std::optional<uint32_t> crc32c;
  std::string sha256;  // empty: not compared
  // Records the damage, and returns the error of the read.
  std::function<absl::Status(std::string_view damage)> damaged;
};

// Ends with an error, and not as if it were complete, if the stored bytes are not the expected
// ones. The checksums are compared if the stream begins at the begin.
class ChunkSource : public FileChunkSource {
 public:
  ChunkSource(std::unique_ptr<ByteSource> source, int64_t offset, Expected expected)
      : source_(std::move(source)), offset_(offset), expected_(std::move(expected)) {
    if (offset > 0) expected_.crc32c.reset();
    if (offset == 0 && expected_.sha256.size() == kSha256Size) sha256_.emplace();
  }

  absl::StatusOr<Pull> Next(v1::FileChunk* chunk) override {
    std::string* data = chunk->mutable_data();
    data->resize(kReadChunk);
    size_t filled = 0;
    while (filled < kReadChunk) {
      const auto n = source_->Read(std::span(*data).subspan(filled));
      if (IsLoss(n.status())) return expected_.damaged(CannotBeRead(n.status()));
      RETURN_IF_ERROR(n.status());
      if (*n == 0) break;
      filled += *n;
    }
    if (filled == 0) return End();
    data->resize(filled);
    chunk->set_offset(offset_);
    chunk->set_crc32c(Crc32c(*data));
    crc32c_ = ExtendCrc32c(crc32c_, *data);
    if (sha256_) sha256_->Update(*data);
    offset_ += static_cast<int64_t>(filled);
    if (offset_ > expected_.size) return expected_.damaged(WrongSize(offset_, expected_.size));
    return Pull::kMessage;
  }

 private:
  absl::StatusOr<Pull> End() {
    if (offset_ < expected_.size) return expected_.damaged(WrongSize(offset_, expected_.size));
    if (expected_.crc32c && *expected_.crc32c != crc32c_) return expected_.damaged(kWrongCrc32c);
    const bool same = !sha256_ || DigestBytes(sha256_->Finish()) == expected_.sha256;
    if (!same) return expected_.damaged(kWrongSha256);
    return Pull::kEnd;
  }

  const std::unique_ptr<ByteSource> source_;
  int64_t offset_;
  Expected expected_;
  uint32_t crc32c_ = 0;
  std::optional<Sha256> sha256_;  // none: not compared
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

// The reader gets its error also if the damage cannot be recorded.
void Record(const DamageRecorder& recorder, const StoredObjectId& object, std::string_view damage) {
  const auto recorded = recorder.Record(object, damage);
  if (!recorded.ok()) {
    Log(LogLevel::kError, "a read found damage that cannot be recorded",
        {{"error", recorded.status()}});
  } else if (recorded->changed) {
    Log(LogLevel::kError, "a read found damage",
        {{"run", object.key.run},
         {"plugin", object.key.plugin},
         {"node", object.key.node},
         {"damage", damage}});
  }
}

// Returns the error of an open at an offset within the recorded size.
absl::Status OpenError(const absl::Status& status, const Expected& expected) {
  if (absl::IsNotFound(status)) return expected.damaged(kMissingFile);
  return IsLoss(status) ? expected.damaged(CannotBeOpened(status)) : status;
}

// `stored`: the size of what `open` opens.
absl::StatusOr<std::unique_ptr<FileChunkSource>> Stream(
    const absl::StatusOr<int64_t>& stored,
    const std::function<absl::StatusOr<std::unique_ptr<ByteSource>>()>& open, int64_t offset,
    Expected expected) {
  if (!stored.ok()) return OpenError(stored.status(), expected);
  if (*stored != expected.size) return expected.damaged(WrongSize(*stored, expected.size));
  auto source = open();
  if (!source.ok()) return OpenError(source.status(), expected);
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

absl::StatusOr<std::unique_ptr<FileChunkSource>> StreamResult(BlobStore& blobs,
                                                              const DamageRecorder& recorder,
                                                              ResultRecord result, int64_t offset) {
  RETURN_IF_ERROR(CheckOffset(offset, result.size));
  Expected expected;
  expected.size = result.size;
  expected.crc32c = result.crc32c;
  expected.damaged = [recorder, object = StoredObjectId{result.key, result.generation,
                                                        result.blob}](std::string_view damage) {
    Record(recorder, object, damage);
    return errors::ResultDamaged(object.key.plugin, object.key.node, damage);
  };
  const absl::StatusOr<int64_t> stored =
      result.blob.empty() ? static_cast<int64_t>(result.body.size()) : blobs.Size(result.blob);
  const auto open = [&] { return OpenResult(blobs, std::move(result), offset); };
  return Stream(stored, open, offset, std::move(expected));
}

std::unique_ptr<FileChunkSource> WithHold(std::unique_ptr<FileChunkSource> source,
                                          std::shared_ptr<void> hold) {
  return std::make_unique<HoldingSource>(std::move(source), std::move(hold));
}

absl::StatusOr<std::unique_ptr<FileChunkSource>> StreamArchive(BlobStore& blobs,
                                                               const DamageRecorder& recorder,
                                                               const std::string& run,
                                                               const ArchiveRecord& archive,
                                                               int64_t offset) {
  RETURN_IF_ERROR(CheckOffset(offset, archive.size));
  Expected expected;
  expected.size = archive.size;
  expected.sha256 = archive.sha256;
  expected.damaged = [recorder, object = StoredObjectId{.key = {.run = run}, .blob = archive.blob}](
                         std::string_view damage) {
    Record(recorder, object, damage);
    return errors::ArchiveDamaged(object.key.run, damage);
  };
  const auto open = [&] { return blobs.Open(archive.blob, offset); };
  return Stream(blobs.Size(archive.blob), open, offset, std::move(expected));
}

}  // namespace muster
