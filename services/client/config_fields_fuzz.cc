// Reads any text as a credentials file in JSON. Values that are accepted are UTF-8, within their
// ranges, and not longer than the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "services/client/client.h"
#include "services/client/config_fields.h"
#include "services/common/base/utf8.h"

namespace {

constexpr size_t kDefaults = 1024;  // bytes of the default values

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::client::Config config;
  const auto fields = muster::client::ClientFields(config);
  if (!muster::client::ReadConfigJson({reinterpret_cast<const char*>(data), size}, "node.json",
                                      fields, muster::client::AgentOnlyFields())
           .ok()) {
    return 0;
  }
  size_t bytes = 0;
  for (const muster::client::ConfigField& field : fields) {
    if (const auto* text = std::get_if<std::string*>(&field.target)) {
      if (!muster::IsUtf8(**text)) std::abort();
      bytes += (*text)->size();
    } else if (const auto* list = std::get_if<std::vector<std::string>*>(&field.target)) {
      for (const std::string& text : **list) {
        if (!muster::IsUtf8(text)) std::abort();
      }
    } else if (const auto* number = std::get_if<int64_t*>(&field.target)) {
      if (**number < field.least || **number > field.most) std::abort();
    }
  }
  if (bytes > size + kDefaults) std::abort();
  return 0;
}
