// A log of records in one file: framed, checksummed, bounded.
//
// A record is 1 to max_record bytes. Its position is its offset in the file, which never changes. A
// crash can only tear bytes that were not synced: a torn or zero tail is truncated when the journal
// is opened. Any other mismatch of a checksum is damage: DATA_LOSS (JOURNAL_DAMAGED) with the
// position, and the file remains unchanged. Only if power was lost before the kernel had written
// the mark of the last sync, damage to its records cannot be distinguished from a torn tail.
#ifndef MUSTER_SERVICES_COMMON_JOURNAL_JOURNAL_H_
#define MUSTER_SERVICES_COMMON_JOURNAL_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/common/journal/frame.h"
#include "services/common/journal/journal_reader.h"

namespace muster {

// The limits of a journal. They are stored in it and apply to all readers and writers.
struct JournalOptions {
  uint32_t max_record = uint32_t{64} << 10;
  uint32_t max_unsynced = uint32_t{256} << 10;  // Append syncs when it is reached
  int64_t max_size = int64_t{1} << 30;
};

// The writer of a journal. Not thread-safe. One writer at a time; any number of JournalReaders of
// the same file may read up to a position that durable_end() reported.
class Journal {
 public:
  // Receives a record and its position. A failure ends the reading.
  using Visitor = absl::FunctionRef<absl::Status(std::string_view record, int64_t position)>;

  // Creates a journal; its name is durable on return. Replaces a journal whose creation was
  // interrupted. After a failure no file remains, as far as the disk permits. Fails with
  // ALREADY_EXISTS.
  static absl::StatusOr<std::unique_ptr<Journal>> Create(FileOps& ops, const std::string& path,
                                                         const JournalOptions& options);

  // Opens a journal for appending and passes each record to `visit`. On return, all records are
  // durable, and a torn tail is truncated. Fails with NOT_FOUND (JOURNAL_UNFINISHED if its creation
  // was interrupted) or DATA_LOSS (JOURNAL_DAMAGED).
  static absl::StatusOr<std::unique_ptr<Journal>> Open(FileOps& ops, const std::string& path,
                                                       Visitor visit);

  // Passes each record to `visit`, changes nothing, and returns the position after the last. Fails
  // as Open does.
  static absl::StatusOr<int64_t> Read(FileOps& ops, const std::string& path, Visitor visit);

  // Writes one record at the end; it survives the loss of the process. Fails with INVALID_ARGUMENT
  // (JOURNAL_RECORD_SIZE) or RESOURCE_EXHAUSTED (JOURNAL_FULL, DISK_FULL). A failure leaves the
  // journal unchanged.
  absl::Status Append(std::string_view record);

  // Makes all appended records survive the loss of power. Records that a failed sync may have lost
  // are written again by the next one.
  absl::Status Sync();

  // The position after the last record, and after the last durable record.
  int64_t end() const { return end_; }
  int64_t durable_end() const { return durable_end_; }

  // Returns a reader that begins at `position`, which is the begin of a record or end(), and shares
  // the open file. The caller must not append while it reads.
  JournalReader ReadFrom(int64_t position) const;
  // The position of the first record.
  static int64_t begin() { return static_cast<int64_t>(kJournalHeaderSize); }

 private:
  Journal(std::shared_ptr<File> file, std::string path, const JournalHeader& header, int64_t end);
  void MarkSync();

  const std::shared_ptr<File> file_;
  const std::string path_;
  const JournalHeader header_;
  int64_t end_;
  int64_t durable_end_;
  std::string unsynced_;      // the frames between both positions
  bool sync_failed_ = false;  // since the last successful sync
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOURNAL_JOURNAL_H_
