#include "services/common/blob/files/staged_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/store.h"

namespace muster {
namespace {

constexpr int64_t kPiece = 256 * 1024;       // bytes per read during recovery
constexpr int64_t kWritebackStep = 2 << 20;  // bytes after which dirty pages are written
constexpr int64_t kReserveStep = int64_t{16} << 20;

class FileSource final : public ByteSource {
 public:
  FileSource(std::shared_ptr<File> file, int64_t offset, int64_t end)
      : file_(std::move(file)), offset_(offset), end_(end) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    const auto left = static_cast<size_t>(end_ - offset_);
    auto got = file_->ReadAt(buffer.first(std::min(buffer.size(), left)), offset_);
    if (got.ok()) offset_ += static_cast<int64_t>(*got);
    return got;
  }

 private:
  const std::shared_ptr<File> file_;
  int64_t offset_;
  const int64_t end_;
};

}  // namespace

std::unique_ptr<ByteSource> MakeFileSource(std::shared_ptr<File> file, int64_t offset,
                                           int64_t end) {
  return std::make_unique<FileSource>(std::move(file), offset, end);
}

std::string StagedFile::DataPath(const StagedFileHost& host, std::string_view id) {
  return absl::StrCat(host.StagedFolder(), "/", ToAbsl(id));
}

std::string StagedFile::LogPath(const StagedFileHost& host, std::string_view id) {
  return absl::StrCat(host.StagedFolder(), "/", ToAbsl(id), ".log");
}

// ---- Begin and resume ----

absl::StatusOr<std::unique_ptr<StagedBlob>> StagedFile::Create(StagedFileHost& host,
                                                               std::string_view id,
                                                               int64_t expected_size) {
  std::unique_ptr<StagedFile> staged(new StagedFile(host, id));
  ASSIGN_OR_RETURN(staged->data_, host.ops().Create(DataPath(host, id)));
  if (absl::Status begun = staged->Begin(expected_size); !begun.ok()) {
    Remove(host, id).IgnoreError();  // the next sweep removes the rest
    return begun;
  }
  return staged;
}

absl::Status StagedFile::Begin(int64_t expected_size) {
  ASSIGN_OR_RETURN(log_, host_.ops().Open(LogPath(host_, id_), OpenMode::kReadWriteOrCreate));
  RETURN_IF_ERROR(log_->Truncate(0));
  expected_size_ = expected_size;
  return expected_size > 0 ? host_.CheckSpace(expected_size) : absl::OkStatus();
}

// Without its owner the file keeps only the space of its bytes.
StagedFile::~StagedFile() {
  if (data_ != nullptr && reserved_ > written_) data_->Truncate(written_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<StagedBlob>> StagedFile::Resume(StagedFileHost& host,
                                                               std::string_view id) {
  std::unique_ptr<StagedFile> staged(new StagedFile(host, id));
  ASSIGN_OR_RETURN(auto info, host.ops().Stat(DataPath(host, id)));
  if (info.links > 1) {
    // The blob was published, and the crash restored the old name: these bytes belong to the
    // published blob.
    RETURN_IF_ERROR(Remove(host, id));
    return absl::NotFoundError(absl::StrCat("staged blob ", ToAbsl(id), " was published"));
  }
  ASSIGN_OR_RETURN(staged->data_, host.ops().Open(DataPath(host, id), OpenMode::kReadWrite));
  ASSIGN_OR_RETURN(staged->log_, host.ops().Open(LogPath(host, id), OpenMode::kReadWriteOrCreate));
  RETURN_IF_ERROR(staged->Recover());
  return staged;
}

// Keeps the bytes that the log verifies. Bytes that may not be durable are written again before
// they are synced: an earlier sync may have failed, and the kernel then considers the lost pages
// clean.
absl::Status StagedFile::Recover() {
  std::string stored(kMaxStagedFileLogSize, '\0');
  ASSIGN_OR_RETURN(auto log_size, log_->ReadAt({stored.data(), stored.size()}, 0));
  stored.resize(log_size);
  const StagedFileLogContent log = DecodeStagedFileLog(stored);
  ASSIGN_OR_RETURN(auto size, data_->Size());

  if (log.mark.offset > size) {
    // Durable bytes are lost: the disk is damaged, so no byte can be trusted.
    RETURN_IF_ERROR(log_->Truncate(0));
  } else if (log.mark.offset > 0) {
    RETURN_IF_ERROR(log_->WriteAt(EncodeChunkRecord(log.mark), kMarkPlaces[log.mark_place]));
    if (absl::Status synced = log_->SyncData(); !synced.ok()) return Break(synced);
    written_ = log.mark.offset;
    crc32c_ = log.mark.crc32c;
    mark_place_ = log.mark_place;
  }
  for (const ChunkRecord& range : log.ranges) {
    if (range.offset != written_ || range.offset + range.length > size) break;
    bool holds = false;
    RETURN_IF_ERROR(RecoverRange(range, holds));
    if (!holds) break;
    written_ += range.length;
  }
  // Also if the size is right: a crash leaves the reserved space after it.
  RETURN_IF_ERROR(data_->Truncate(written_));
  return SyncNow();
}

absl::Status StagedFile::RecoverRange(const ChunkRecord& range, bool& holds) {
  std::string piece;
  uint32_t crc = 0;
  uint32_t whole = crc32c_;
  for (int64_t done = 0; done < range.length; done += static_cast<int64_t>(piece.size())) {
    piece.resize(static_cast<size_t>(std::min(kPiece, range.length - done)));
    ASSIGN_OR_RETURN(auto got, data_->ReadAt({piece.data(), piece.size()}, range.offset + done));
    if (got < piece.size()) return absl::OkStatus();
    crc = ExtendCrc32c(crc, piece);
    whole = ExtendCrc32c(whole, piece);
    RETURN_IF_ERROR(data_->WriteAt(piece, range.offset + done));
  }
  holds = crc == range.crc32c;
  if (holds) crc32c_ = whole;
  return absl::OkStatus();
}

// ---- Write ----

absl::Status StagedFile::Usable() const {
  if (!broken_ && data_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("staged blob ", id_, " is closed: it was published or discarded, or it failed"));
}

// Ends all writing by this object; a resume finds the valid bytes.
absl::Status StagedFile::Break(const absl::Status& cause) {
  broken_ = true;
  return errors::SyncFailed(id_, ToStd(cause.message()));
}

absl::Status StagedFile::Append(std::string_view data, uint32_t crc32c) {
  RETURN_IF_ERROR(Usable());
  if (data.empty()) return absl::OkStatus();
  if (ranges_ == kMaxRanges) {
    RETURN_IF_ERROR(SyncNow());
  }
  if (absl::Status done = Write(data, crc32c); !done.ok()) {
    // A full disk wrote at most a part; the next call overwrites it.
    if (!absl::IsResourceExhausted(done)) broken_ = true;
    return done;
  }
  written_ += static_cast<int64_t>(data.size());
  crc32c_ = CombineCrc32c(crc32c_, crc32c, data.size());
  ++ranges_;
  if (written_ - durable_ >= host_.sync_every()) return SyncNow();
  if (written_ - writeback_ >= kWritebackStep) {
    data_->StartWriteback(writeback_, written_ - writeback_);
    writeback_ = written_;
  }
  return absl::OkStatus();
}

absl::Status StagedFile::Write(std::string_view data, uint32_t crc32c) {
  const int64_t end = written_ + static_cast<int64_t>(data.size());
  if (end > reserved_) {
    const int64_t most = expected_size_ > 0 ? expected_size_ : INT64_MAX;
    const int64_t reserve = std::max(end, std::min(written_ + kReserveStep, most));
    RETURN_IF_ERROR(host_.CheckSpace(end - written_));
    // If less than one step is free, the remaining space is still used.
    if (data_->Reserve(reserve).ok()) reserved_ = reserve;
  }
  RETURN_IF_ERROR(data_->WriteAt(data, written_));
  const ChunkRecord range = {ChunkRecord::Kind::kRange, static_cast<uint32_t>(data.size()),
                             written_, crc32c};
  return log_->WriteAt(EncodeChunkRecord(range), kRangesBegin + ranges_ * kChunkRecordSize);
}

absl::Status StagedFile::Sync() {
  RETURN_IF_ERROR(Usable());
  if (names_durable_ && durable_ == written_) return absl::OkStatus();
  return SyncNow();
}

// Syncs the bytes first, then writes the mark.
absl::Status StagedFile::SyncNow() {
  if (absl::Status synced = data_->SyncData(); !synced.ok()) return Break(synced);
  const int place = 1 - mark_place_;
  const ChunkRecord mark = {ChunkRecord::Kind::kMark, 0, written_, crc32c_};
  if (absl::Status noted = log_->WriteAt(EncodeChunkRecord(mark), kMarkPlaces[place]);
      !noted.ok()) {
    return Break(noted);
  }
  if (absl::Status synced = log_->SyncData(); !synced.ok()) return Break(synced);
  if (!names_durable_) {
    absl::Status synced = host_.ops().SyncFolder(host_.StagedFolder());
    if (!synced.ok()) return Break(synced);
    names_durable_ = true;
  }
  mark_place_ = place;
  ranges_ = 0;
  durable_ = writeback_ = written_;
  return absl::OkStatus();
}

// First a mark covers all bytes, so that no range is needed. Then both marks are replaced: until
// the second one is, the higher one counts.
absl::Status StagedFile::Truncate(int64_t size, uint32_t crc32c) {
  RETURN_IF_ERROR(Usable());
  if (size < 0 || size > written_) {
    return absl::OutOfRangeError(absl::StrCat("size ", size, " is beyond ", written_));
  }
  if (size == written_) return absl::OkStatus();
  RETURN_IF_ERROR(SyncNow());
  if (absl::Status reduced = ReduceMarks(size, crc32c); !reduced.ok()) return Break(reduced);
  written_ = durable_ = writeback_ = size;
  crc32c_ = crc32c;
  if (absl::Status cut = data_->Truncate(size); !cut.ok()) return Break(cut);
  reserved_ = size;
  return absl::OkStatus();
}

absl::Status StagedFile::ReduceMarks(int64_t size, uint32_t crc32c) {
  RETURN_IF_ERROR(log_->Truncate(kRangesBegin));
  const std::string mark = EncodeChunkRecord({ChunkRecord::Kind::kMark, 0, size, crc32c});
  for (const int place : {1 - mark_place_, mark_place_}) {
    RETURN_IF_ERROR(log_->WriteAt(mark, kMarkPlaces[place]));
    RETURN_IF_ERROR(log_->SyncData());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ByteSource>> StagedFile::Read(int64_t offset) {
  RETURN_IF_ERROR(Usable());
  if (offset < 0 || offset > written_) {
    return absl::OutOfRangeError(absl::StrCat("offset ", offset, " is beyond ", written_));
  }
  return MakeFileSource(data_, offset, written_);
}

// ---- Publish and discard ----

absl::Status StagedFile::Publish(std::string_view name) {
  RETURN_IF_ERROR(Usable());
  ASSIGN_OR_RETURN(auto path, host_.PrepareFolders(name));
  RETURN_IF_ERROR(Seal());
  absl::Status moved = MoveTo(path);
  if (absl::IsAlreadyExists(moved)) {
    ASSIGN_OR_RETURN(auto there, host_.ops().Stat(path));
    if (there.size != written_) {
      return errors::BlobExists(name, there.size, written_);
    }
    // Published before, possibly directly before a crash: its name may not be durable yet.
    moved = host_.ops().SyncFolder(ParentFolder(path));
    if (!moved.ok()) return Break(moved);
  }
  if (!moved.ok()) return moved;
  data_.reset();
  log_.reset();
  Remove(host_, id_).IgnoreError();  // the sweep at start removes the rest
  return absl::OkStatus();
}

// Makes all bytes durable and releases the reserved space after them.
absl::Status StagedFile::Seal() {
  if (reserved_ > written_) {
    RETURN_IF_ERROR(data_->Truncate(written_));
    reserved_ = written_;
  }
  if (absl::Status synced = data_->SyncData(); !synced.ok()) return Break(synced);
  return absl::OkStatus();
}

absl::Status StagedFile::MoveTo(const std::string& path) {
  const std::string from = DataPath(host_, id_);
  RETURN_IF_ERROR(host_.ops().RenameNoReplace(from, path));
  absl::Status synced = host_.ops().SyncFolder(ParentFolder(path));
  if (synced.ok()) return synced;
  // The loss of power may remove the name, so the rename is reverted for a resume.
  host_.ops().RenameNoReplace(path, from).IgnoreError();
  return Break(synced);
}

absl::Status StagedFile::Discard() {
  data_.reset();
  log_.reset();
  return Remove(host_, id_);
}

absl::Status StagedFile::Remove(StagedFileHost& host, std::string_view id) {
  for (const std::string& path : {DataPath(host, id), LogPath(host, id)}) {
    absl::Status removed = host.ops().Remove(path);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  return absl::OkStatus();
}

}  // namespace muster
