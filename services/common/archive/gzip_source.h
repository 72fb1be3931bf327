// Reads gzip as a stream.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_GZIP_SOURCE_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_GZIP_SOURCE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/io.h"

struct z_stream_s;

namespace muster {

// Limits the ratio of decompressed to compressed bytes. A stream beyond it is malformed.
struct GzipLimits {
  int64_t ratio = 100;
  int64_t free_bytes = int64_t{64} << 20;  // decompressed bytes that the ratio does not bind
};

// Decompresses another source: one gzip member or several (RFC 1952), and nothing else. Verifies
// the checksum and the length at the end of each member, which libarchive does not. Returns errors
// of the source unchanged; a stream that is not gzip, is incomplete or damaged, or exceeds a limit
// fails with INVALID_ARGUMENT (TAR_GZ_MALFORMED). Not thread-safe.
class GzipSource : public ByteSource {
 public:
  // `in` must outlive this.
  GzipSource(ByteSource& in, const GzipLimits& limits);
  ~GzipSource() override;

  // Returns 0 only after the whole stream was read and verified.
  absl::StatusOr<size_t> Read(std::span<char> buffer) override;

  // The number of compressed bytes read from the source.
  int64_t consumed() const { return consumed_; }

 private:
  absl::Status Fill();
  absl::StatusOr<size_t> Inflate(std::span<char> buffer);

  struct Free {
    void operator()(z_stream_s* stream) const;
  };

  ByteSource& in_;
  const GzipLimits limits_;
  std::unique_ptr<z_stream_s, Free> stream_;  // null if memory was exhausted
  std::vector<char> input_;
  int64_t consumed_ = 0;
  int64_t made_ = 0;
  int64_t members_ = 0;  // that have ended
  bool in_member_ = false;
  bool input_ended_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_GZIP_SOURCE_H_
