// A log of records in one file: framed, checksummed, bounded.
//
// A record is 1 to max_record bytes. Its position is its offset in the file, which never changes.
// Damage is told from what a crash leaves: a crash can only tear what was not synced, so a tail
// that is torn or zero is cut off when the journal is opened; anything else that does not match its
// checksum is DATA_LOSS (JOURNAL_DAMAGED) with its position, and the file stays as it is. Damage to
// records of the last sync alone cannot be told from a torn tail.
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

// Limits of a journal. They are stored in it, and hold for everyone who reads or writes it.
struct JournalOptions {
  uint32_t max_record = uint32_t{64} << 10;
  uint32_t max_unsynced = uint32_t{256} << 10;  // then Append syncs by itself
  int64_t max_size = int64_t{1} << 30;
};

// The writer of a journal. Not thread-safe. One writer at a time; any number of JournalReaders of
// the same file may read up to a position that durable_end() reported.
class Journal {
 public:
  // Receives a record and its position. A failure ends the call that reads.
  using Visitor = absl::FunctionRef<absl::Status(std::string_view record, int64_t position)>;

  // Creates a journal; its name is durable when it returns. Replaces one whose creation was cut
  // off. After a failure no file is left, as far as the disk allows. ALREADY_EXISTS.
  static absl::StatusOr<std::unique_ptr<Journal>> Create(FileOps& ops, const std::string& path,
                                                         const JournalOptions& options);

  // Opens a journal to append to it and gives each record to `visit`. When it returns, all these
  // are durable, and a torn tail is cut off. NOT_FOUND (JOURNAL_UNFINISHED if its creation was cut
  // off), DATA_LOSS (JOURNAL_DAMAGED).
  static absl::StatusOr<std::unique_ptr<Journal>> Open(FileOps& ops, const std::string& path,
                                                       Visitor visit);

  // Gives each record to `visit`, changes nothing, and returns the position after the last. The
  // errors of Open.
  static absl::StatusOr<int64_t> Read(FileOps& ops, const std::string& path, Visitor visit);

  // Writes one record at the end; it survives the loss of the process. INVALID_ARGUMENT
  // (JOURNAL_RECORD_SIZE), RESOURCE_EXHAUSTED (JOURNAL_FULL, DISK_FULL). After a failure the
  // journal is as before.
  absl::Status Append(std::string_view record);

  // Makes all appended records survive the loss of power. Records that a failed sync may have lost
  // are written again by the next one.
  absl::Status Sync();

  // The position after the last record, and after the last that is durable.
  int64_t end() const { return end_; }
  int64_t durable_end() const { return durable_end_; }

  // Reads from `position` on, which is the begin of a record or end(), by the same open file. The
  // caller does not append while it reads.
  JournalReader ReadFrom(int64_t position) const;
  // The position of the first record.
  static int64_t begin() { return static_cast<int64_t>(kJournalHeaderSize); }

 private:
  Journal(std::shared_ptr<File> file, std::string path, const JournalHeader& header, int64_t end);

  const std::shared_ptr<File> file_;
  const std::string path_;
  const JournalHeader header_;
  int64_t end_;
  int64_t durable_end_;
  std::string unsynced_;      // the frames between the two
  bool sync_failed_ = false;  // since the last that succeeded
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOURNAL_JOURNAL_H_
