#ifndef MUSTER_SERVICES_AGENT_MODULES_WAIT_H_
#define MUSTER_SERVICES_AGENT_MODULES_WAIT_H_

#include <memory>

#include "services/agent/module.h"

namespace muster {

// Another process writes the done file (services/client/done_file.h). After `stop` it continues for
// a minute, as old sidecars do.
std::unique_ptr<Module> MakeWaitModule();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULES_WAIT_H_
