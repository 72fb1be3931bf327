// Unpacks a result that is a gzip-compressed tar, within limits.
//
// Sonobuoy unpacks such results into its archive, and so does Muster. A tar from a node may contain
// anything: one that breaks a limit is not refused but stored unchanged. This must be known before
// the first byte is written, so there are two passes over the same bytes: CheckTarGz, then
// UnpackTarGz. Both stream. Their memory does not depend on the tar's size; each entry takes about
// 100 bytes.
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
  size_t max_name = 255;                  // bytes of a path component
  size_t max_path = 1024;                 // bytes of a path
};

struct UnpackCheck {
  bool ok = false;
  std::string why;    // if not ok: the fault, for humans
  int64_t files = 0;  // if ok
  int64_t bytes = 0;  // if ok: unpacked bytes
};

// Reads `source` to its end. Returns only errors of the source. The result is not ok if the stream
// is not a gzip tar, or is damaged, incomplete or empty; if it exceeds a limit; or if it contains
// an absolute path, a path with "..", a link, a device, a setuid bit, or a name that is both file
// and folder.
absl::StatusOr<UnpackCheck> CheckTarGz(ByteSource& source, const UnpackLimits& limits = {});

// Receives the content of a tar in its order. Paths are relative and safe (each component as
// SafeFileName makes it) and unique: the second file of a name gets the suffix "~2".
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

// Reads the same bytes again and passes them to `visitor`. Ends with the first error of the visitor
// or the source, or with INVALID_ARGUMENT if CheckTarGz would not have been ok.
absl::Status UnpackTarGz(ByteSource& source, const UnpackLimits& limits, UnpackVisitor& visitor);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_UNPACKER_H_
