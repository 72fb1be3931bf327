// The two ends of a byte stream, so that no part has to hold a whole body.
#ifndef MUSTER_SERVICES_COMMON_BASE_IO_H_
#define MUSTER_SERVICES_COMMON_BASE_IO_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// Where bytes come from. Not thread-safe; one reader at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills the beginning of `buffer` and returns how many bytes it filled; 0 means the end (and only
  // the end, as long as `buffer` is not empty). May block on a disk or a pipe: never call it on a
  // gRPC thread.
  virtual absl::StatusOr<size_t> Read(std::span<char> buffer) = 0;
};

// Where bytes go. Not thread-safe; one writer at a time.
class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Takes all of `data` or fails; after a failure the sink is unusable. May block.
  virtual absl::Status Write(std::string_view data) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_IO_H_
