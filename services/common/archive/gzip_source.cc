#include "services/common/archive/gzip_source.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/results.h"

namespace muster {
namespace {

constexpr size_t kBlock = 64 * 1024;
constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header instead of zlib's

}  // namespace

void GzipSource::Free::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

GzipSource::GzipSource(ByteSource& in, const GzipLimits& limits)
    : in_(in), limits_(limits), stream_(new z_stream_s{}), input_(kBlock) {
  if (inflateInit2(stream_.get(), kGzipWindow) != Z_OK) stream_ = nullptr;
}

GzipSource::~GzipSource() = default;

absl::StatusOr<size_t> GzipSource::Read(std::span<char> buffer) {
  if (stream_ == nullptr) return absl::ResourceExhaustedError("no memory for a gzip stream");
  for (;;) {
    if (stream_->avail_in == 0) RETURN_IF_ERROR(Fill());
    if (stream_->avail_in == 0) {
      if (in_member_) return errors::TarGzMalformed("it ends too early");
      if (members_ == 0) return errors::TarGzMalformed("it is empty");
      return 0;
    }
    ASSIGN_OR_RETURN(const size_t made, Inflate(buffer));
    if (made > 0) return made;
  }
}

absl::Status GzipSource::Fill() {
  if (input_ended_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t got, in_.Read(input_));
  consumed_ += static_cast<int64_t>(got);
  input_ended_ = got == 0;
  stream_->next_in = reinterpret_cast<Bytef*>(input_.data());
  stream_->avail_in = static_cast<uInt>(got);
  return absl::OkStatus();
}

absl::StatusOr<size_t> GzipSource::Inflate(std::span<char> buffer) {
  if (!in_member_ && members_ > 0) inflateReset(stream_.get());
  in_member_ = true;
  const size_t space = std::min<size_t>(buffer.size(), std::numeric_limits<uInt>::max());
  stream_->next_out = reinterpret_cast<Bytef*>(buffer.data());
  stream_->avail_out = static_cast<uInt>(space);
  const int result = inflate(stream_.get(), Z_NO_FLUSH);
  const size_t made = space - stream_->avail_out;
  made_ += static_cast<int64_t>(made);
  if (made_ > limits_.free_bytes && made_ / limits_.ratio > consumed_) {
    return errors::TarGzMalformed(
        absl::StrCat("it unpacks to more than ", limits_.ratio, " times its size"));
  }
  switch (result) {
    case Z_STREAM_END:
      in_member_ = false;
      ++members_;
      return made;
    case Z_OK:
    case Z_BUF_ERROR:  // it needs more bytes, or more space
      return made;
    case Z_MEM_ERROR:
      return absl::ResourceExhaustedError("no memory for a gzip stream");
    default:
      break;
  }
  const std::string_view why = stream_->msg == nullptr ? "" : stream_->msg;
  if (why == "incorrect header check") {
    return errors::TarGzMalformed(members_ == 0 ? "it is not gzip-compressed"
                                                : "other bytes follow its gzip stream");
  }
  if (why == "incorrect data check" || why == "incorrect length check") {
    return errors::TarGzMalformed("its gzip checksum does not match its content");
  }
  return errors::TarGzMalformed(absl::StrCat("its gzip stream is damaged: ", ToAbsl(why)));
}

}  // namespace muster
