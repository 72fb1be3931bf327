// Generated from journal.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_JOURNAL_H_
#define MUSTER_SERVICES_COMMON_ERRORS_JOURNAL_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Journals.
namespace muster::errors {

// DATA_LOSS, JOURNAL_DAMAGED.
absl::Status JournalDamaged(std::string_view path, int64_t position);
// NOT_FOUND, JOURNAL_UNFINISHED.
absl::Status JournalUnfinished(std::string_view path);
// INVALID_ARGUMENT, JOURNAL_RECORD_SIZE.
absl::Status JournalRecordSize(std::string_view path, int64_t limit, int64_t size);
// RESOURCE_EXHAUSTED, JOURNAL_FULL.
absl::Status JournalFull(std::string_view path, int64_t limit);
// OUT_OF_RANGE, JOURNAL_POSITION.
absl::Status JournalPosition(int64_t position);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_JOURNAL_H_
