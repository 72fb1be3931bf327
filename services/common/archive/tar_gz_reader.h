// Reading a gzip-compressed tar of unknown origin as a stream.
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
#include "services/common/base/io.h"

struct archive;

namespace muster {

struct TarEntry {
  enum class Type { kFile, kDirectory, kOther };
  Type type = Type::kOther;
  std::string path;  // as it stands in the archive: may be anything
  int64_t size = 0;
  bool executable = false;
  int64_t mtime = 0;   // seconds since the epoch
  std::string oddity;  // "a symbolic link", "setuid", ...: what we never unpack; empty if none
};

// How much may come out of the compressed stream for what went in; beyond, it counts as malformed.
struct TarGzReadLimits {
  int64_t ratio = 100;
  int64_t free_bytes = int64_t{64} << 20;  // uncompressed bytes that the ratio does not bind
};

// For archives that we made: those may well shrink by more than we would trust a stranger with.
inline constexpr TarGzReadLimits kOwnArchive{.ratio = std::numeric_limits<int64_t>::max()};

// Not thread-safe. An error of the source is passed on as it is; a stream that is no gzip tar, is
// cut short, damaged or breaks a limit is INVALID_ARGUMENT with reason TAR_GZ_MALFORMED. Memory is
// bounded whatever the stream holds.
class TarGzReader {
 public:
  // Reads up to the first header. `source` must outlive the reader.
  static absl::StatusOr<std::unique_ptr<TarGzReader>> Open(ByteSource& source,
                                                           const TarGzReadLimits& limits = {});
  ~TarGzReader();

  // The next entry (what is left of the present one is skipped), or nothing at the end. The whole
  // stream has been read and was sound when the end is reported.
  absl::StatusOr<std::optional<TarEntry>> Next();

  // Bytes of the present entry, as ByteSource::Read.
  absl::StatusOr<size_t> Read(std::span<char> buffer);

  // Compressed bytes taken from the source so far.
  int64_t consumed() const { return consumed_; }

 private:
  TarGzReader(ByteSource& source, const TarGzReadLimits& limits);

  long Fill(const void** data);
  absl::Status Failure();

  struct Free {
    void operator()(archive* a) const;
  };

  ByteSource& source_;
  const TarGzReadLimits limits_;
  absl::Status source_status_;
  bool over_ratio_ = false;
  int64_t consumed_ = 0;
  std::vector<char> buffer_;
  std::unique_ptr<archive, Free> archive_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_TAR_GZ_READER_H_
