#ifndef MUSTER_SERVICES_AGENT_MODULES_EXEC_H_
#define MUSTER_SERVICES_AGENT_MODULES_EXEC_H_

#include <memory>

#include "services/agent/module.h"

namespace muster {

// Runs the definition's command as a child process, with RESULTS_DIR and an environment from an
// allow-list, and takes the result that its done file names; if it ends well without a done file,
// everything it wrote. A plugin that dies, takes too long or writes nothing is an error with the
// tail of its output.
std::unique_ptr<Module> MakeExecModule();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULES_EXEC_H_
