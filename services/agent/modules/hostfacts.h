#ifndef MUSTER_SERVICES_AGENT_MODULES_HOSTFACTS_H_
#define MUSTER_SERVICES_AGENT_MODULES_HOSTFACTS_H_

#include <memory>

#include "services/agent/module.h"

namespace muster {

// Facts of this machine, gathered by Ansible's setup module as installed here: facts.json, pretty
// printed. Without Ansible an error that says how to install it.
std::unique_ptr<Module> MakeHostfactsModule();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULES_HOSTFACTS_H_
