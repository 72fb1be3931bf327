// Generated from store.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/store.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status DiskHasNoRoom(int64_t more, int64_t available) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                   absl::StrCat("the disk has no space for ", more, " bytes: ", available, " bytes are free for results"),
                   "Free space on the aggregator's disk, or delete old runs; accepted results are kept."),
                        absl::Seconds(30));
}

absl::Status DiskHasOnlyReserve(int64_t available, int64_t reserve) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                   absl::StrCat("the disk has no space for more data: ", available, " bytes are free, and ", reserve, " bytes are kept to start, cancel and delete"),
                   "Free space on the disk of the service, or delete old runs; accepted results are kept."),
                        absl::Seconds(30));
}

absl::Status StoreFull() {
  return MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                   "the state store is full: its disk is full, or its size is limited",
                   "Free space on the disk of the service, and try again; no data was lost.");
}

absl::Status StoreCorrupt(std::string_view why) {
  return MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                   why,
                   "Stop the service, keep a copy of the file, and restore a backup.");
}

absl::Status StoreMissing(std::string_view path) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_MISSING",
                   absl::StrCat("state store ", ToAbsl(path), " is missing or empty, but it was in use before"),
                   "Move the home folder away, and restore a backup (muster restore) or create a new fleet.");
}

absl::Status StoreNotAccessible(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "STORE_NOT_ACCESSIBLE",
                   why,
                   "Check owner and mode of the file and its folder.");
}

absl::Status StoreError(std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "STORE_ERROR",
                   why,
                   "Check the disk and the kernel's log.");
}

absl::Status StoreNeedsLocalDisk(std::string_view path) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_NOT_ACCESSIBLE",
                   absl::StrCat("the file system of ", ToAbsl(path), " does not support a write-ahead log"),
                   "Keep the state store on a local disk.");
}

absl::Status StoreInUse(std::string_view path, std::string_view holder) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_IN_USE",
                   absl::StrCat("state store ", ToAbsl(path), " is in use by another process", ToAbsl(holder)),
                   "Stop that process first, for example with `muster down`, or configure another store for this one.");
}

absl::Status StoreTooNew(int64_t version, int64_t current) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_TOO_NEW",
                   absl::StrCat("the state store has schema version ", version, "; this program knows versions up to ", current),
                   "Run the Muster version that wrote the store or a later one, or restore an older backup.");
}

absl::Status StoreBusy() {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "STORE_BUSY",
                   "too many changes are queued in the state store",
                   "Try again later."),
                        absl::Seconds(1));
}

absl::Status StoreFailed(std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "STORE_FAILED",
                   absl::StrCat("the state store stopped: ", ToAbsl(why)),
                   "Check the disk, then restart the service: acknowledged changes are durable.");
}

absl::Status CursorUnknown(int64_t last, int64_t cursor) {
  return MakeError(absl::StatusCode::kOutOfRange, "CURSOR_UNKNOWN",
                   absl::StrCat("the change feed ends at ", last, ", before cursor ", cursor),
                   "Take a snapshot and follow from its cursor.");
}

absl::Status CursorCompacted(int64_t first, int64_t cursor) {
  return MakeError(absl::StatusCode::kOutOfRange, "CURSOR_COMPACTED",
                   absl::StrCat("the change feed begins at ", first, ", after cursor ", cursor),
                   "Take a snapshot and follow from its cursor.");
}

absl::Status SyncFailed(std::string_view blob, std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "SYNC_FAILED",
                   absl::StrCat("staged blob ", ToAbsl(blob), " was not made durable: ", ToAbsl(why)),
                   "Check the disk and the kernel's log; the sender may resume.");
}

absl::Status BlobExists(std::string_view blob, int64_t size, int64_t expected) {
  return MakeError(absl::StatusCode::kAlreadyExists, "BLOB_EXISTS",
                   absl::StrCat("blob ", ToAbsl(blob), " exists with ", size, " bytes instead of ", expected),
                   "");
}

}  // namespace muster::errors
