#include "services/common/upload/upload_chunk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/base/zstd_frame.h"
#include "services/common/errors/results.h"

namespace muster {

absl::StatusOr<std::string> RawBytes(UploadChunk chunk) {
  if (!chunk.zstd) {
    if (static_cast<int64_t>(chunk.data.size()) != chunk.raw_size) {
      return errors::InvalidChunk(
          absl::StrCat("it announces ", chunk.raw_size, " bytes and contains ", chunk.data.size()));
    }
    return std::move(chunk.data);
  }
  std::string raw;
  const absl::Status unpacked =
      DecompressFrame(chunk.data, static_cast<size_t>(chunk.raw_size), &raw);
  if (!unpacked.ok()) return errors::InvalidChunk(ToStd(unpacked.message()));
  if (static_cast<int64_t>(raw.size()) != chunk.raw_size) {
    return errors::InvalidChunk("its frame contains fewer bytes than announced");
  }
  return raw;
}

}  // namespace muster
