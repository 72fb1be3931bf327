#ifndef MUSTER_SERVICES_AGENT_MODULES_HOSTFACTS_H_
#define MUSTER_SERVICES_AGENT_MODULES_HOSTFACTS_H_

#include <memory>

#include "services/agent/module.h"

namespace muster {

// Facts of this machine, gathered by the installed Ansible's setup module: facts.json,
// pretty-printed. Fails without Ansible; the error describes how to install it.
std::unique_ptr<Module> MakeHostfactsModule();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULES_HOSTFACTS_H_
