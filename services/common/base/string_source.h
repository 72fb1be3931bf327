// A text in memory as a source of bytes.
#ifndef MUSTER_SERVICES_COMMON_BASE_STRING_SOURCE_H_
#define MUSTER_SERVICES_COMMON_BASE_STRING_SOURCE_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "services/common/base/io.h"

namespace muster {

// Not thread-safe.
class StringSource : public ByteSource {
 public:
  // Begins at `offset`, which is at most the size of the text.
  explicit StringSource(std::string text, size_t offset = 0)
      : text_(std::move(text)), position_(offset) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    const size_t n = std::min(buffer.size(), text_.size() - position_);
    std::copy_n(text_.data() + position_, n, buffer.data());
    position_ += n;
    return n;
  }

 private:
  const std::string text_;
  size_t position_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_STRING_SOURCE_H_
