// gzip as a stream.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_GZIP_SINK_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_GZIP_SINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/common/base/io.h"
#include "services/common/base/sha256.h"

struct z_stream_s;

namespace muster {

// Compresses into another sink; the header contains neither time nor name. Not thread-safe.
class GzipSink : public ByteSink {
 public:
  // `level` is 1 (fast) to 9; `out` must outlive this.
  GzipSink(ByteSink& out, int level);
  ~GzipSink() override;

  absl::Status Write(std::string_view data) override;

  // Writes the remaining bytes and ends the stream.
  absl::Status Finish();

  // Number and digest of the compressed bytes, valid after Finish.
  int64_t size() const { return size_; }
  Sha256Digest digest() { return digest_.Finish(); }

 private:
  absl::Status Deflate(std::string_view data, int flush);

  struct Free {
    void operator()(z_stream_s* stream) const;
  };

  ByteSink& out_;
  std::unique_ptr<z_stream_s, Free> stream_;  // null if memory was exhausted
  std::string buffer_;
  int64_t size_ = 0;
  Sha256 digest_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_GZIP_SINK_H_
