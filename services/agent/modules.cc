#include "services/agent/modules.h"

#include <algorithm>
#include <iterator>

#include "services/agent/modules/exec.h"
#include "services/agent/modules/hostfacts.h"
#include "services/agent/modules/systemd_logs.h"
#include "services/agent/modules/wait.h"

namespace muster {
namespace {

// A new module is a file and a row here.
const ModuleEntry kModules[] = {
    {"hostfacts", MakeHostfactsModule, absl::Minutes(10), true},
    {"systemd-logs", MakeSystemdLogsModule, absl::Minutes(10), true},
    {"exec", MakeExecModule, absl::Hours(6), false},
    {"wait", MakeWaitModule, absl::InfiniteDuration(), false},
};

}  // namespace

std::span<const ModuleEntry> Modules() { return kModules; }

const ModuleEntry* FindModule(std::string_view name) {
  const auto* entry = std::ranges::find(kModules, name, &ModuleEntry::name);
  return entry == std::end(kModules) ? nullptr : entry;
}

}  // namespace muster
