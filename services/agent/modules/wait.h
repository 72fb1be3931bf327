#ifndef MUSTER_SERVICES_AGENT_MODULES_WAIT_H_
#define MUSTER_SERVICES_AGENT_MODULES_WAIT_H_

#include <memory>

#include "services/agent/module.h"

namespace muster {

// Waits for a done file of another process (services/client/done_file.h). After `stop` it waits for
// a minute more, as legacy sidecars do.
std::unique_ptr<Module> MakeWaitModule();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULES_WAIT_H_
