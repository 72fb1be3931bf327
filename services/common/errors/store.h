// Generated from store.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_STORE_H_
#define MUSTER_SERVICES_COMMON_ERRORS_STORE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Stores.
namespace muster::errors {

// RESOURCE_EXHAUSTED, DISK_FULL.
absl::Status DiskHasNoRoom(int64_t more, int64_t available);
// RESOURCE_EXHAUSTED, DISK_FULL.
absl::Status DiskHasOnlyReserve(int64_t available, int64_t reserve);
// RESOURCE_EXHAUSTED, DISK_FULL.
absl::Status StoreFull();
// DATA_LOSS, STORE_CORRUPT.
absl::Status StoreCorrupt(std::string_view why);
// FAILED_PRECONDITION, STORE_MISSING.
absl::Status StoreMissing(std::string_view path);
// PERMISSION_DENIED, STORE_NOT_ACCESSIBLE.
absl::Status StoreNotAccessible(std::string_view why);
// INTERNAL, STORE_ERROR.
absl::Status StoreError(std::string_view why);
// FAILED_PRECONDITION, STORE_NOT_ACCESSIBLE.
absl::Status StoreNeedsLocalDisk(std::string_view path);
// FAILED_PRECONDITION, STORE_IN_USE.
absl::Status StoreInUse(std::string_view path, std::string_view holder);
// FAILED_PRECONDITION, STORE_TOO_NEW.
absl::Status StoreTooNew(int64_t version, int64_t current);
// RESOURCE_EXHAUSTED, STORE_BUSY.
absl::Status StoreBusy();
// UNAVAILABLE, STORE_FAILED.
absl::Status StoreFailed(std::string_view why);
// OUT_OF_RANGE, CURSOR_UNKNOWN.
absl::Status CursorUnknown(int64_t last, int64_t cursor);
// OUT_OF_RANGE, CURSOR_COMPACTED.
absl::Status CursorCompacted(int64_t first, int64_t cursor);
// INTERNAL, SYNC_FAILED.
absl::Status SyncFailed(std::string_view blob, std::string_view why);
// ALREADY_EXISTS, BLOB_EXISTS.
absl::Status BlobExists(std::string_view blob, int64_t size, int64_t expected);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_STORE_H_
