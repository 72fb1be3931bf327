// Generated from journal.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/journal.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status JournalDamaged(std::string_view path, int64_t position) {
  return MakeError(absl::StatusCode::kDataLoss, "JOURNAL_DAMAGED",
                   absl::StrCat("journal ", ToAbsl(path), " is damaged at position ", position),
                   "Check the disk; keep the file if you need its records.");
}

absl::Status JournalUnfinished(std::string_view path) {
  return MakeError(absl::StatusCode::kNotFound, "JOURNAL_UNFINISHED",
                   absl::StrCat("the creation of journal ", ToAbsl(path), " was interrupted"),
                   "");
}

absl::Status JournalRecordSize(std::string_view path, int64_t limit, int64_t size) {
  return MakeError(absl::StatusCode::kInvalidArgument, "JOURNAL_RECORD_SIZE",
                   absl::StrCat("journal ", ToAbsl(path), " stores records of 1 to ", limit, " bytes, not of ", size),
                   "");
}

absl::Status JournalFull(std::string_view path, int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "JOURNAL_FULL",
                   absl::StrCat("journal ", ToAbsl(path), " has reached its limit of ", limit, " bytes"),
                   "");
}

absl::Status JournalPosition(int64_t position) {
  return MakeError(absl::StatusCode::kOutOfRange, "JOURNAL_POSITION",
                   absl::StrCat("no record begins at position ", position),
                   "");
}

}  // namespace muster::errors
