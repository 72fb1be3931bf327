#include "services/common/rpc/frame_meter.h"

#include <algorithm>

namespace muster {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Types and flags of frames.
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kResetStream = 3;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kPing = 6;
constexpr uint8_t kWindowUpdate = 8;
constexpr uint8_t kContinuation = 9;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

constexpr size_t kTenSettings = 60;  // bytes

}  // namespace

std::string_view FrameMeter::Read(std::string_view bytes, absl::Duration now) {
  while (!bytes.empty() && part_ != Part::kNotAClient) {
    size_t read = 1;
    if (part_ == Part::kPreface) {
      if (bytes.front() != kPreface[position_]) {
        part_ = Part::kNotAClient;
      } else if (++position_ == kPreface.size()) {
        part_ = Part::kHeader;
        position_ = 0;
      }
    } else if (part_ == Part::kHeader) {
      read = std::min(bytes.size(), sizeof(header_) - position_);
      std::copy_n(bytes.begin(), read, header_ + position_);
      position_ += read;
      if (position_ == sizeof(header_)) {
        position_ = 0;
        payload_ = size_t{header_[0]} << 16 | size_t{header_[1]} << 8 | header_[2];
        if (payload_ > 0) part_ = Part::kPayload;
        const std::string_view excess = Count(now);
        if (!excess.empty()) return excess;
        if (payload_ == 0) EndIfLast();
      }
    } else {
      read = std::min(bytes.size(), payload_);
      payload_ -= read;
      if (header_[3] == kData && !messages_.Read(stream(), bytes.substr(0, read))) {
        return "bytes in one message";
      }
      if (payload_ == 0) {
        part_ = Part::kHeader;
        EndIfLast();
      }
    }
    bytes.remove_prefix(read);
  }
  return "";
}

uint32_t FrameMeter::stream() const {
  return uint32_t{header_[5] & 0x7fu} << 24 | uint32_t{header_[6]} << 16 |
         uint32_t{header_[7]} << 8 | header_[8];
}

// The frame was read.
void FrameMeter::EndIfLast() {
  if ((header_[3] == kData || header_[3] == kHeaders) && HasFlag(kEndStream)) {
    messages_.End(stream());
  }
}

// Counts the frame whose header was read.
std::string_view FrameMeter::Count(absl::Duration now) {
  const uint8_t type = header_[3];
  if (now - second_ >= absl::Seconds(1)) {
    second_ = now;
    counts_ = {};
  }
  switch (type) {
    case kHeaders: {
      block_bytes_ = 0;
      continuations_ = 0;
      const std::string_view excess = CountHeaders(HasFlag(kEndHeaders));
      if (!excess.empty()) return excess;
      // Others begin no call: gRPC takes them for trailers, which its clients do not send, or skips
      // them.
      if (stream() % 2 == 0 || stream() <= last_stream_) break;
      last_stream_ = stream();
      ++opened_;
      return messages_.Begin(last_stream_) ? "" : "open calls";
    }
    case kContinuation:
      ++continuations_;
      return CountHeaders(HasFlag(kEndHeaders));
    case kResetStream:
      ++reset_;
      messages_.End(stream());
      return ++counts_.resets > kMaxResetsPerSecond ? "resets" : "";
    case kSettings:
      counts_.settings += 1 + static_cast<int>(payload_ / kTenSettings);
      return counts_.settings > kMaxSettingsPerSecond ? "settings" : "";
    case kPing:
      return ++counts_.pings > kMaxPingsPerSecond ? "pings" : "";
    case kWindowUpdate:
      return ++counts_.window_updates > kMaxWindowUpdatesPerSecond ? "window updates" : "";
    case kData:
      if (payload_ >= kSmallData || HasFlag(kEndStream)) return "";
      if (payload_ == 0) break;
      return ++counts_.small_data > kMaxSmallDataFramesPerSecond ? "small frames of data" : "";
    default:
      break;
  }
  return ++counts_.control_frames > kMaxControlFramesPerSecond ? "control frames" : "";
}

std::string_view FrameMeter::CountHeaders(bool ends) {
  block_bytes_ += payload_;
  if (block_bytes_ > kMaxHeaderBlockBytes) return "header bytes of one call";
  if (continuations_ > kMaxContinuations) return "header frames of one call";
  if (ends) continuations_ = 0;
  return "";
}

}  // namespace muster
