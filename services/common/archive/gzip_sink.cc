#include "services/common/archive/gzip_sink.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kBlock = 64 * 1024;
constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header instead of zlib's
constexpr int kMemory = 8;            // zlib's default

}  // namespace

void GzipSink::Free::operator()(z_stream_s* stream) const {
  deflateEnd(stream);
  delete stream;
}

GzipSink::GzipSink(ByteSink& out, int level)
    : out_(out), stream_(new z_stream_s{}), buffer_(kBlock, '\0') {
  if (deflateInit2(stream_.get(), std::clamp(level, 1, 9), Z_DEFLATED, kGzipWindow, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    stream_ = nullptr;
  }
}

GzipSink::~GzipSink() = default;

absl::Status GzipSink::Write(std::string_view data) {
  while (!data.empty()) {
    const std::string_view piece = data.substr(0, std::numeric_limits<int>::max());
    RETURN_IF_ERROR(Deflate(piece, Z_NO_FLUSH));
    data.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status GzipSink::Finish() { return Deflate("", Z_FINISH); }

absl::Status GzipSink::Deflate(std::string_view data, int flush) {
  if (stream_ == nullptr) return absl::ResourceExhaustedError("no memory for a gzip stream");
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream_->avail_in = static_cast<uInt>(data.size());
  do {
    stream_->next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_->avail_out = static_cast<uInt>(buffer_.size());
    if (deflate(stream_.get(), flush) == Z_STREAM_ERROR) {
      return absl::InternalError("gzip: the stream has ended");
    }
    const std::string_view made(buffer_.data(), buffer_.size() - stream_->avail_out);
    if (made.empty()) break;
    RETURN_IF_ERROR(out_.Write(made));
    digest_.Update(made);
    size_ += static_cast<int64_t>(made.size());
  } while (stream_->avail_out == 0);
  return absl::OkStatus();
}

}  // namespace muster
