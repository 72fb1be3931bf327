// Parses any text as a tree of results. A tree that was parsed is written and parsed again;
// written twice, it is the same text. (The first time, keys that are not UTF-8 are cleaned, which
// may change their order.)
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/common/archive/results_yaml.h"
#include "services/common/archive/test_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto tree = muster::ParseResultsYaml({reinterpret_cast<const char*>(data), size});
  std::string text[3];
  for (std::string& written : text) {
    if (!tree.ok()) return 0;
    muster::StringSink sink;
    if (!muster::WriteResultsYaml(*tree, sink).ok()) std::abort();
    written = sink.text;
    tree = muster::ParseResultsYaml(written);
    if (!tree.ok()) std::abort();
  }
  if (text[1] != text[2]) std::abort();
  return 0;
}
