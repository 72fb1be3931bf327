// Streams of bytes, so that no part holds a whole body in memory.
#ifndef MUSTER_SERVICES_COMMON_BASE_IO_H_
#define MUSTER_SERVICES_COMMON_BASE_IO_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// A source of bytes. Not thread-safe; one reader at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills the beginning of `buffer` and returns the number of filled bytes; 0 only at the end, if
  // `buffer` is not empty. May block on a disk or a pipe: never call it on a
  // gRPC thread.
  virtual absl::StatusOr<size_t> Read(std::span<char> buffer) = 0;
};

// A destination of bytes. Not thread-safe; one writer at a time.
class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Writes all of `data` or fails; after a failure the sink is unusable. May block.
  virtual absl::Status Write(std::string_view data) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_IO_H_
