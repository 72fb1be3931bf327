// Parses any text as the definition of a plugin. One that is accepted has a valid name, keeps its
// text, and is accepted again with the same values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "services/common/plugin/plugin_definition.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plugin = muster::ParsePluginDefinition(text, "plugin.yaml");
  if (!plugin.ok()) return 0;
  if (!muster::ValidatePluginName(plugin->name).ok() || plugin->yaml != text) std::abort();
  const auto again = muster::ParsePluginDefinition(plugin->yaml, "plugin.yaml");
  if (!again.ok() || again->name != plugin->name || again->command != plugin->command ||
      again->args != plugin->args || again->env != plugin->env || again->kind != plugin->kind) {
    std::abort();
  }
  if (plugin->kind == muster::PluginKind::kExec && plugin->command.empty() &&
      plugin->args.empty()) {
    std::abort();
  }
  return 0;
}
