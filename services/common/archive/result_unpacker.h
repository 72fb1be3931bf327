// Taking apart a result that is itself a gzip-compressed tar, under limits.
//
// Sonobuoy unpacks such results into its own archive, and so do we; but a tar comes from a node and
// may hold anything. What breaks a limit is not refused: the caller stores the tar as it came. That
// has to be known before the first byte is written, so there are two passes over the same bytes:
// CheckTarGz, then UnpackTarGz. Both stream; their memory does not grow with the tar's size, and
// with its entries by some 100 bytes each, up to the limit.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_UNPACKER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_UNPACKER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/io.h"

namespace muster {

struct UnpackLimits {
  int64_t ratio = 100;                    // unpacked bytes for each compressed one
  int64_t ratio_free_bytes = 1 << 20;     // unpacked bytes that the ratio does not bind
  int64_t max_bytes = int64_t{64} << 30;  // unpacked, all files together
  int64_t max_entries = 65'536;           // files and folders
  size_t max_depth = 32;                  // components of a path
  size_t max_name = 255;                  // bytes of a component
  size_t max_path = 1024;                 // bytes of a path
};

struct UnpackCheck {
  bool ok = false;
  std::string why;    // if not ok: what is wrong, to be read by people
  int64_t files = 0;  // if ok
  int64_t bytes = 0;  // if ok: unpacked
};

// Reads `source` to its end. Never an error but one of the source itself. Not ok is: no gzip tar,
// one that is damaged or cut short or holds nothing, one beyond a limit, and one with an absolute
// or climbing name, a link, a device, a setuid bit, or a name that is both file and folder.
absl::StatusOr<UnpackCheck> CheckTarGz(ByteSource& source, const UnpackLimits& limits = {});

// What UnpackTarGz tells, in the order of the tar. Paths are relative and safe (each component as
// SafeFileName makes it) and never told twice: the second file of a name gets "~2" behind it.
class UnpackVisitor {
 public:
  virtual ~UnpackVisitor() = default;
  virtual absl::Status Folder(std::string_view path) = 0;
  // `original` is the name in the tar.
  virtual absl::Status BeginFile(std::string_view path, std::string_view original, int64_t size,
                                 bool executable) = 0;
  virtual absl::Status Data(std::string_view data) = 0;
  virtual absl::Status EndFile() = 0;
};

// The same bytes once more, for real. Ends with the first error of the visitor or the source;
// INVALID_ARGUMENT if CheckTarGz would not have been ok.
absl::Status UnpackTarGz(ByteSource& source, const UnpackLimits& limits, UnpackVisitor& visitor);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_UNPACKER_H_
