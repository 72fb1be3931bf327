// How one result rests in the spool: the file of an entry.
//
//   <folder>/entries/o-<id>          an upload that has begun
//   <folder>/entries/c-<order>-<id>  a result that is complete: it has to be delivered
//   <folder>/entries/d-<order>-<id>  one that is dealt with, and about to be removed
//   <folder>/blobs/                  bytes: what arrives, and results above 64 KiB (blob/files)
//
// A file is: "MSP1", the header's length and CRC32C (4 bytes each, little-endian), the header, and
// of a small result its bytes. The header is a SubmitResultRequest without `body`: of a complete
// result with all that is needed to deliver it.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_SPOOL_ENTRY_H_
#define MUSTER_SERVICES_RELAY_SPOOL_SPOOL_ENTRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/file_ops.h"

namespace muster {

enum class EntryState : char { kOpen = 'o', kComplete = 'c', kDone = 'd' };

struct EntryName {
  EntryState state = EntryState::kOpen;
  uint64_t order = 0;  // rises with each result that is complete
  std::string id;      // 32 hex digits
};

std::string FormatEntryName(const EntryName& name);
// Nothing for a file that is none of ours.
std::optional<EntryName> ParseEntryName(std::string_view file);

std::string EncodeEntry(const v1::SubmitResultRequest& header, std::string_view body);

// The header alone, which is at most 64 KiB. DATA_LOSS (SPOOL_DAMAGED) if it does not hold, also
// when it is read a second time.
absl::StatusOr<v1::SubmitResultRequest> ReadEntryHeader(FileOps& ops, const std::string& path);
// The bytes of a small result.
absl::StatusOr<std::string> ReadEntryBody(FileOps& ops, const std::string& path);

// Whether a failed read proves that what was to be read is lost: it is absent, or not what was
// written. Any other failure (no file descriptor, a disk that fails now) may pass.
bool IsProvenLoss(const absl::Status& status);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_SPOOL_ENTRY_H_
