// Parses any text as the progress of a plugin. Its texts are UTF-8 and not longer than the input
// with each byte replaced.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "services/agent/progress_json.h"
#include "services/common/base/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto progress = muster::ParseProgressJson({reinterpret_cast<const char*>(data), size});
  if (!progress.ok()) return 0;
  size_t bytes = 0;
  const auto check = [&](std::string_view text) {
    if (!muster::IsUtf8(text)) std::abort();
    bytes += text.size();
  };
  check(progress->message);
  for (const auto* texts : {&progress->failures, &progress->errors, &progress->append_failing}) {
    for (const std::string& text : *texts) check(text);
  }
  if (bytes > 3 * size) std::abort();
  return 0;
}
