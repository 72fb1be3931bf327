#include "services/common/base/zstd_frame.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

// A frame with data begins so; "skippable" ones, which hold none, do not.
constexpr std::string_view kMagic = "\x28\xb5\x2f\xfd";

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

void CompressFrame(std::string_view raw, std::string* out, int level) {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  out->resize(ZSTD_compressBound(raw.size()));
  // With that much room it fails only for want of memory.
  const size_t size =
      ZSTD_compressCCtx(context.get(), out->data(), out->size(), raw.data(), raw.size(), level);
  out->resize(ZSTD_isError(size) != 0 ? 0 : size);
}

absl::Status DecompressFrame(std::string_view frame, size_t max_raw, std::string* out) {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  const size_t frame_size = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(frame_size) != 0) return errors::InvalidFrame(ZSTD_getErrorName(frame_size));
  if (frame_size != frame.size()) return errors::InvalidFrame("bytes follow the frame");
  const unsigned long long named = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (named == ZSTD_CONTENTSIZE_ERROR || !frame.starts_with(kMagic))
    return errors::InvalidFrame("no data");
  if (named != ZSTD_CONTENTSIZE_UNKNOWN && named > max_raw) return errors::FrameTooLarge(max_raw);
  out->resize(named == ZSTD_CONTENTSIZE_UNKNOWN ? max_raw : static_cast<size_t>(named));
  const size_t size =
      ZSTD_decompressDCtx(context.get(), out->data(), out->size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0) {
    out->clear();
    return ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall
               ? errors::FrameTooLarge(max_raw)
               : errors::InvalidFrame(ZSTD_getErrorName(size));
  }
  out->resize(size);
  return absl::OkStatus();
}

}  // namespace muster
