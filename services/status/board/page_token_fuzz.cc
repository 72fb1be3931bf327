// Parses any text as a page token of the status. One that is accepted is written as the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "services/status/board/pair_pages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string token(reinterpret_cast<const char*>(data), size);
  const auto position = muster::ParsePageToken(token);
  if (!position.ok() || token.empty()) return 0;
  if (position->plugin.empty() || muster::ToPageToken(*position) != token) std::abort();
  return 0;
}
