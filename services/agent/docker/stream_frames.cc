#include "services/agent/docker/stream_frames.h"

#include <algorithm>

#include "services/common/base/status_macros.h"
#include "services/common/errors/docker.h"

namespace muster {
namespace {

constexpr size_t kMaxError = size_t{4} << 10;

}  // namespace

absl::Status StreamFrames::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (left_ == 0) {
      header_[header_size_++] = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      if (header_size_ < header_.size()) continue;
      header_size_ = 0;
      RETURN_IF_ERROR(ReadHeader());
    } else {
      const size_t size = std::min<size_t>(left_, bytes.size());
      left_ -= static_cast<uint32_t>(size);
      ReadPayload(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
    if (left_ == 0) RETURN_IF_ERROR(EndFrame());
  }
  return absl::OkStatus();
}

absl::Status StreamFrames::ReadHeader() {
  if (header_[0] > static_cast<int>(Kind::kError) || header_[1] != 0 || header_[2] != 0 ||
      header_[3] != 0) {
    return errors::ContainerOutputDamaged();
  }
  kind_ = static_cast<Kind>(header_[0]);
  left_ = uint32_t{header_[4]} << 24 | uint32_t{header_[5]} << 16 | uint32_t{header_[6]} << 8 |
          uint32_t{header_[7]};
  return absl::OkStatus();
}

void StreamFrames::ReadPayload(std::string_view payload) {
  switch (kind_) {
    case Kind::kStdin:
      break;  // the echo of an input, which containers of jobs do not have
    case Kind::kStdout:
      sink_(ContainerStream::kStdout, payload);
      break;
    case Kind::kStderr:
      sink_(ContainerStream::kStderr, payload);
      break;
    case Kind::kError:
      error_.append(payload.substr(0, kMaxError - std::min(kMaxError, error_.size())));
      break;
  }
}

absl::Status StreamFrames::EndFrame() const {
  if (kind_ != Kind::kError) return absl::OkStatus();
  return errors::ContainerOutputLost(error_);
}

}  // namespace muster
