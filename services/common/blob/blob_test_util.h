// Bytes for tests of blobs.
#ifndef MUSTER_SERVICES_COMMON_BLOB_BLOB_TEST_UTIL_H_
#define MUSTER_SERVICES_COMMON_BLOB_BLOB_TEST_UTIL_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "services/common/base/io.h"

namespace muster {

// Returns all bytes until the end, or the message of the failure.
inline std::string ReadAll(ByteSource& source) {
  std::string all;
  char buffer[1000];
  while (true) {
    auto got = source.Read(buffer);
    if (!got.ok()) return std::string(got.status().message());
    if (*got == 0) return all;
    all.append(buffer, *got);
  }
}

// Returns bytes without a visible pattern, equal for equal seeds.
inline std::string Pattern(size_t size, unsigned seed = 1) {
  std::string data(size, '\0');
  uint32_t x = seed * 2654435761u + 12345;
  for (char& c : data) c = static_cast<char>((x = x * 1664525u + 1013904223u) >> 24);
  return data;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_BLOB_TEST_UTIL_H_
