// A stream of the bytes of a shared file.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_READER_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "muster/v1/types.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/io.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/stream.h"

namespace muster {

// Not thread-safe.
class ShareReader : public StreamSource<v1::FileChunk> {
 public:
  ShareReader(std::unique_ptr<ByteSource> source, int64_t offset)
      : source_(std::move(source)), offset_(offset) {}

  absl::StatusOr<Pull> Next(v1::FileChunk* chunk) override {
    std::string& data = *chunk->mutable_data();
    data.resize(kPiece);
    ASSIGN_OR_RETURN(const auto n, source_->Read(data));
    if (n == 0) return Pull::kEnd;
    data.resize(n);
    chunk->set_offset(offset_);
    chunk->set_crc32c(Crc32c(data));
    offset_ += static_cast<int64_t>(n);
    return Pull::kMessage;
  }

 private:
  static constexpr size_t kPiece = size_t{256} << 10;

  const std::unique_ptr<ByteSource> source_;
  int64_t offset_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_READER_H_
