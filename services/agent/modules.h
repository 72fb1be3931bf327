// The table of this agent's modules.
#ifndef MUSTER_SERVICES_AGENT_MODULES_H_
#define MUSTER_SERVICES_AGENT_MODULES_H_

#include <memory>
#include <span>
#include <string_view>

#include "absl/time/time.h"
#include "services/agent/module.h"

namespace muster {

// One row of the table.
struct ModuleEntry {
  std::string_view name;
  std::unique_ptr<Module> (*make)();
  // The default limit.
  absl::Duration time_limit;
  // True: a plugin of this name needs no definition.
  bool built_in = false;
};

std::span<const ModuleEntry> Modules();

// Returns the module of that name, or null.
const ModuleEntry* FindModule(std::string_view name);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULES_H_
