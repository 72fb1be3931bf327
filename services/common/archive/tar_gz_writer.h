// Writes a tar.gz as a stream.
//
// Equal entries in equal order give equal bytes: the caller sets the times, owner and group are 0,
// modes are 0644 (0755 for folders and programs), and the gzip header contains no time.
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
  int level = 1;  // gzip, 1 (fast) to 9; results are text, for which 1 is sufficient
  absl::Time mtime = absl::UnixEpoch();  // of every entry, in whole seconds
};

// Not thread-safe. After an error the writer is unusable, and the output is not an archive.
class TarGzWriter {
 public:
  // `sink` must outlive the writer; its errors are returned unchanged.
  static absl::StatusOr<std::unique_ptr<TarGzWriter>> Create(ByteSink& sink,
                                                             const TarGzOptions& options);
  ~TarGzWriter();

  // The caller ensures that paths are relative, UTF-8, unique, and have single slashes.
  absl::Status AddDirectory(std::string_view path);
  absl::StatusOr<ContentInfo> AddFile(std::string_view path, std::string_view content);

  // Copies exactly `size` bytes. Fails with DATA_LOSS if the source ends early or contains more.
  absl::StatusOr<ContentInfo> AddFile(std::string_view path, int64_t size, ByteSource& source);

  // Begins a file that is written in pieces. tar stores the size before the bytes, so it must be
  // known (>= 0); otherwise fails with INVALID_ARGUMENT.
  absl::Status BeginFile(std::string_view path, int64_t size, bool executable = false);
  // Fails with DATA_LOSS if the bytes exceed the announced size.
  absl::Status Write(std::string_view data);
  // Fails with DATA_LOSS if fewer bytes were written than announced.
  absl::StatusOr<ContentInfo> EndFile();

  // Ends the archive; returns size and SHA-256 of all bytes of the sink.
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
  bool ended_ = false;     // no output is permitted
  std::string path_;       // of the open file
  int64_t announced_ = 0;  // its size
  int64_t written_ = 0;    // bytes written of it
  Sha256 file_digest_;
  std::unique_ptr<archive, Free> archive_;  // declared last: its destructor calls Emit
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_TAR_GZ_WRITER_H_
