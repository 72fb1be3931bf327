// Reads a gzip-compressed tar of unknown origin as a stream.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_TAR_GZ_READER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_TAR_GZ_READER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/archive/gzip_source.h"
#include "services/common/base/io.h"

struct archive;

namespace muster {

struct TarEntry {
  enum class Type { kFile, kDirectory, kOther };
  Type type = Type::kOther;
  std::string path;  // unchanged from the archive: any bytes
  int64_t size = 0;
  bool executable = false;
  int64_t mtime = 0;  // seconds since the epoch
  std::string
      oddity;  // "a symbolic link", "setuid", ...: a kind that is never unpacked; empty if none
};

// For archives of this program, whose ratio may be higher.
inline constexpr GzipLimits kOwnArchive{.ratio = std::numeric_limits<int64_t>::max()};

// Not thread-safe. Returns errors of the source unchanged. A stream that is not a gzip tar, is
// incomplete or damaged, or exceeds a limit fails with INVALID_ARGUMENT (TAR_GZ_MALFORMED). The
// memory is bounded for any input.
class TarGzReader {
 public:
  // Reads up to the first header. `source` must outlive the reader.
  static absl::StatusOr<std::unique_ptr<TarGzReader>> Open(ByteSource& source,
                                                           const GzipLimits& limits = {});
  ~TarGzReader();

  // Returns the next entry and skips the rest of the current one; returns nothing at the end, after
  // the whole stream was read and verified.
  absl::StatusOr<std::optional<TarEntry>> Next();

  // Reads bytes of the current entry, as ByteSource::Read does.
  absl::StatusOr<size_t> Read(std::span<char> buffer);

  // The number of compressed bytes read from the source.
  int64_t consumed() const { return gzip_.consumed(); }

 private:
  TarGzReader(ByteSource& source, const GzipLimits& limits);

  long Fill(const void** data);
  absl::Status Failure();
  absl::Status ReadToEnd();

  struct Free {
    void operator()(archive* a) const;
  };

  GzipSource gzip_;
  absl::Status gzip_status_;
  std::vector<char> buffer_;
  std::unique_ptr<archive, Free> archive_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_TAR_GZ_READER_H_
