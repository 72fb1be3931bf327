// Feeds any bytes, whole and byte by byte: both pass the same output, and fail at the same place.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "services/agent/docker/stream_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string whole;
  muster::StreamFrames at_once(
      [&](muster::ContainerStream, std::string_view part) { whole.append(part); });
  const absl::Status status = at_once.Feed(bytes);
  std::string pieces;
  muster::StreamFrames one_by_one(
      [&](muster::ContainerStream, std::string_view part) { pieces.append(part); });
  absl::Status last;
  for (size_t i = 0; i < size && last.ok(); ++i) last = one_by_one.Feed(bytes.substr(i, 1));
  if (whole != pieces || last != status) std::abort();
  return 0;
}
