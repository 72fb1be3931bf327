// A tar.gz as a stream.
//
// The same entries in the same order give the same bytes: times are given, owner and group are 0,
// modes are 0644 (0755 for folders and programs), and gzip's own header carries no time.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_TAR_GZ_WRITER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_TAR_GZ_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/archive/gzip_sink.h"
#include "services/common/base/io.h"
#include "services/common/base/sha256.h"

struct archive;

namespace muster {

// Size in bytes and SHA-256 (64 lower-case hex digits) of a file or a stream.
struct ContentInfo {
  int64_t size = 0;
  std::string sha256;
};

struct TarGzOptions {
  int level = 1;                         // gzip, 1 (fast) to 9; results are text: 1 gets most of it
  absl::Time mtime = absl::UnixEpoch();  // of every entry, in whole seconds
};

// Not thread-safe. After any error the writer is unusable and what the sink got is no archive.
class TarGzWriter {
 public:
  // `sink` must outlive the writer; its errors are passed on as they are.
  static absl::StatusOr<std::unique_ptr<TarGzWriter>> Create(ByteSink& sink,
                                                             const TarGzOptions& options);
  ~TarGzWriter();

  // Paths are relative, UTF-8, with single slashes, and named once: the caller sees to that.
  absl::Status AddDirectory(std::string_view path);
  absl::StatusOr<ContentInfo> AddFile(std::string_view path, std::string_view content);

  // Copies exactly `size` bytes; DATA_LOSS if the source ends early or holds more.
  absl::StatusOr<ContentInfo> AddFile(std::string_view path, int64_t size, ByteSource& source);

  // A file piece by piece. tar puts the size before the bytes, so it has to be known (>= 0):
  // INVALID_ARGUMENT otherwise.
  absl::Status BeginFile(std::string_view path, int64_t size, bool executable = false);
  // DATA_LOSS if that were more bytes than announced.
  absl::Status Write(std::string_view data);
  // DATA_LOSS if there were fewer bytes than announced.
  absl::StatusOr<ContentInfo> EndFile();

  // Ends the archive: size and SHA-256 of all that went into the sink.
  absl::StatusOr<ContentInfo> Finish();

 private:
  TarGzWriter(ByteSink& sink, const TarGzOptions& options);

  absl::Status WriteHeader(std::string_view path, int64_t size, unsigned type, unsigned mode);
  absl::Status Failure(std::string_view what);
  long Emit(const void* data, size_t size);

  struct Free {
    void operator()(archive* a) const;
  };

  const absl::Time mtime_;
  GzipSink gzip_;
  absl::Status sink_status_;
  bool ended_ = false;     // nothing may go out any more
  std::string path_;       // of the open file
  int64_t announced_ = 0;  // its size
  int64_t written_ = 0;    // of it so far
  Sha256 file_digest_;
  std::unique_ptr<archive, Free> archive_;  // last: its end still calls Emit
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_TAR_GZ_WRITER_H_
