// Reads the records of a journal (journal.h), from any of its positions.
#ifndef MUSTER_SERVICES_COMMON_JOURNAL_JOURNAL_READER_H_
#define MUSTER_SERVICES_COMMON_JOURNAL_JOURNAL_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/file_ops.h"
#include "services/common/journal/frame.h"

namespace muster {

// Not thread-safe. Holds at most 64 KiB or one record in memory, and nothing after it reached
// `end`.
class JournalReader {
 public:
  // Opens a journal for reading, also while another object writes it. Fails with NOT_FOUND
  // (JOURNAL_UNFINISHED) if its creation was interrupted, or DATA_LOSS (JOURNAL_DAMAGED).
  static absl::StatusOr<std::unique_ptr<JournalReader>> Open(FileOps& ops, const std::string& path);

  // Reads from `position` on, which must be the begin of a record or the end.
  JournalReader(std::shared_ptr<File> file, std::string path, const JournalHeader& header,
                int64_t position);

  // Moves to `position`; 0 means the first record. Fails with OUT_OF_RANGE (JOURNAL_POSITION)
  // unless a record begins there or it is `end`.
  absl::Status Seek(int64_t position, int64_t end);

  // Reads the next record before `end`, a position that the writer reported, or the size of the
  // file. `record` is valid until the next call. Returns false at `end`, and at the mark of the
  // last sync if it is the last before `end`. Fails with DATA_LOSS (JOURNAL_DAMAGED) if there is no
  // complete, undamaged record; the position remains.
  absl::StatusOr<bool> Next(int64_t end, std::string_view* record);

  // The position after the last record read.
  int64_t position() const { return position_; }

  // The position up to which the journal was synced when the last record was written; at the mark
  // of a sync, its position, also if Next has failed there.
  int64_t synced() const { return synced_; }

  const JournalHeader& header() const { return header_; }

 private:
  // Returns at least `size` bytes from the position on, or all bytes before `end`.
  absl::StatusOr<std::string_view> Fill(size_t size, int64_t end);

  const std::shared_ptr<File> file_;
  const std::string path_;
  const JournalHeader header_;
  int64_t position_;
  int64_t synced_ = 0;
  std::string buffer_;  // the bytes of the file from buffer_at_ on
  int64_t buffer_at_ = 0;
};

// Reads the header of a journal. Fails with NOT_FOUND (JOURNAL_UNFINISHED) or DATA_LOSS
// (JOURNAL_DAMAGED).
absl::StatusOr<JournalHeader> ReadJournalHeader(File& file, const std::string& path);

// Returns DATA_LOSS (JOURNAL_DAMAGED): the bytes at `position` differ from the synced ones.
absl::Status JournalDamaged(const std::string& path, int64_t position);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOURNAL_JOURNAL_READER_H_
