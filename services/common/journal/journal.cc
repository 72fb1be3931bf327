// The bytes are described in frame.cc.
#include "services/common/journal/journal.h"

#include <algorithm>
#include <span>
#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/journal.h"

namespace muster {
namespace {

// The outcome of a scan of a journal.
struct Scan {
  int64_t size = 0;     // of the file
  int64_t end = 0;      // after the last valid record
  int64_t synced = 0;   // at least these bytes are durable
  bool marked = false;  // the file ends with the mark of the last sync
};

uint64_t RandomSalt() { return std::stoull(RandomHex(8), nullptr, 16); }

absl::StatusOr<std::string> ReadRange(File& file, int64_t from, int64_t to) {
  std::string bytes(static_cast<size_t>(to - from), '\0');
  ASSIGN_OR_RETURN(const auto got, file.ReadAt(std::span<char>(bytes), from));
  bytes.resize(got);
  return bytes;
}

// Returns true if the bytes from `bad` on, which do not begin with a valid record, were synced.
// This is certain if there are more of them than a crash can tear, or if a later frame was written
// after a sync beyond `bad`.
absl::StatusOr<bool> IsDamage(File& file, const JournalHeader& header, int64_t bad, int64_t size) {
  const int64_t most = std::max<int64_t>(header.max_unsynced, header.max_record + kFrameHeaderSize);
  if (size - bad > most) return true;
  ASSIGN_OR_RETURN(const auto tail, ReadRange(file, bad, size));
  for (size_t i = 1; i + kFrameHeaderSize <= tail.size(); ++i) {
    const int64_t position = bad + static_cast<int64_t>(i);
    const auto frame =
        DecodeFrameHeader(header, position, std::string_view(tail).substr(i, kFrameHeaderSize));
    if (frame && position - frame->unsynced > bad) return true;
  }
  return false;
}

absl::StatusOr<Scan> ScanJournal(const std::shared_ptr<File>& file, const std::string& path,
                                 const JournalHeader& header, Journal::Visitor visit) {
  ASSIGN_OR_RETURN(const auto size, file->Size());
  Scan scan = {size, Journal::begin(), Journal::begin()};
  JournalReader reader(file, path, header, scan.end);
  for (;;) {
    std::string_view record;
    const auto found = reader.Next(size, &record);
    if (!found.ok() && !absl::IsDataLoss(found.status())) return found.status();
    scan.synced = std::max(scan.synced, reader.synced());
    if (!found.ok() || !*found) {
      scan.marked = found.ok() && scan.end < size;
      break;
    }
    RETURN_IF_ERROR(visit(record, scan.end));
    scan.end = reader.position();
  }
  if (scan.end == size || scan.marked) return scan;
  // The frame that was about to overwrite the mark may be torn.
  ASSIGN_OR_RETURN(const auto damage, IsDamage(*file, header, scan.end, size));
  if (damage) return JournalDamaged(path, scan.end);
  return scan;
}

// Writes the header of a new journal, durably.
absl::StatusOr<std::shared_ptr<File>> CreateFile(FileOps& ops, const std::string& path,
                                                 const JournalHeader& header) {
  ASSIGN_OR_RETURN(auto file, ops.Create(path));
  absl::Status status = file->WriteAt(EncodeJournalHeader(header), 0);
  if (status.ok()) status = file->SyncData();
  if (status.ok()) status = ops.SyncFolder(ParentFolder(path));
  if (status.ok()) return file;
  ops.Remove(path).IgnoreError();
  return status;
}

}  // namespace

Journal::Journal(std::shared_ptr<File> file, std::string path, const JournalHeader& header,
                 int64_t end)
    : file_(std::move(file)),
      path_(std::move(path)),
      header_(header),
      end_(end),
      durable_end_(end) {}

absl::StatusOr<std::unique_ptr<Journal>> Journal::Create(FileOps& ops, const std::string& path,
                                                         const JournalOptions& options) {
  const JournalHeader header = {RandomSalt(), options.max_size, options.max_record,
                                options.max_unsynced};
  auto file = CreateFile(ops, path, header);
  if (absl::IsAlreadyExists(file.status())) {
    if (ReasonOf(JournalReader::Open(ops, path).status()) != "JOURNAL_UNFINISHED") {
      return file.status();
    }
    RETURN_IF_ERROR(ops.Remove(path));
    file = CreateFile(ops, path, header);
  }
  if (!file.ok()) return file.status();
  return std::unique_ptr<Journal>(new Journal(*std::move(file), path, header, begin()));
}

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(FileOps& ops, const std::string& path,
                                                       Visitor visit) {
  ASSIGN_OR_RETURN(auto opened, ops.Open(path, OpenMode::kReadWrite));
  const std::shared_ptr<File> file = std::move(opened);
  ASSIGN_OR_RETURN(const auto header, ReadJournalHeader(*file, path));
  ASSIGN_OR_RETURN(const auto scan, ScanJournal(file, path, header, visit));
  std::unique_ptr<Journal> journal(new Journal(file, path, header, scan.end));
  if (!scan.marked && scan.synced == begin()) {
    // Nothing proves that its creation was completed: a kill may have interrupted it.
    RETURN_IF_ERROR(file->WriteAt(EncodeJournalHeader(header), 0));
    RETURN_IF_ERROR(file->SyncData());
    RETURN_IF_ERROR(ops.SyncFolder(ParentFolder(path)));
  }
  if (!scan.marked && (scan.synced < scan.end || scan.end < scan.size)) {
    // Bytes without proof of a sync may be lost by an earlier sync that failed: only rewritten
    // bytes are durable after the next sync.
    ASSIGN_OR_RETURN(const auto unproven, ReadRange(*file, scan.synced, scan.end));
    absl::Status status = file->Truncate(scan.end);
    if (status.ok()) status = file->WriteAt(unproven, scan.synced);
    if (status.ok()) status = file->SyncData();
    if (!status.ok()) return status;
    journal->MarkSync();
  }
  return journal;
}

absl::StatusOr<int64_t> Journal::Read(FileOps& ops, const std::string& path, Visitor visit) {
  ASSIGN_OR_RETURN(auto opened, ops.Open(path, OpenMode::kRead));
  const std::shared_ptr<File> file = std::move(opened);
  ASSIGN_OR_RETURN(const auto header, ReadJournalHeader(*file, path));
  ASSIGN_OR_RETURN(const auto scan, ScanJournal(file, path, header, visit));
  return scan.end;
}

absl::Status Journal::Append(std::string_view record) {
  if (record.empty() || record.size() > header_.max_record) {
    return errors::JournalRecordSize(path_, header_.max_record,
                                     static_cast<int64_t>(record.size()));
  }
  const auto size = static_cast<int64_t>(kFrameHeaderSize + record.size());
  if (end_ + size > header_.max_size) {
    return errors::JournalFull(path_, header_.max_size);
  }
  const bool too_much = end_ + size - durable_end_ > int64_t{header_.max_unsynced};
  if (too_much && end_ > durable_end_) {
    RETURN_IF_ERROR(Sync());
  }
  const std::string frame =
      EncodeFrame(header_, end_, static_cast<uint32_t>(end_ - durable_end_), record);
  if (absl::Status s = file_->WriteAt(frame, end_); !s.ok()) {
    // If this fails as well, the next record overwrites the bytes, or Open truncates them.
    file_->Truncate(end_).IgnoreError();
    if (end_ == durable_end_) MarkSync();
    return s;
  }
  end_ += size;
  unsynced_ += frame;
  return absl::OkStatus();
}

absl::Status Journal::Sync() {
  if (durable_end_ == end_) return absl::OkStatus();
  if (sync_failed_) {
    RETURN_IF_ERROR(file_->WriteAt(unsynced_, durable_end_));
  }
  if (absl::Status s = file_->SyncData(); !s.ok()) {
    sync_failed_ = true;
    return s;
  }
  sync_failed_ = false;
  durable_end_ = end_;
  std::string().swap(unsynced_);
  MarkSync();
  return absl::OkStatus();
}

// Only helps to detect damage: a failure has no other effect.
void Journal::MarkSync() {
  file_->WriteAt(EncodeSyncMark(header_, durable_end_), durable_end_).IgnoreError();
}

JournalReader Journal::ReadFrom(int64_t position) const {
  return JournalReader(file_, path_, header_, position);
}

}  // namespace muster
