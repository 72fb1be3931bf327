#ifndef MUSTER_SERVICES_AGENT_MODULES_EXEC_H_
#define MUSTER_SERVICES_AGENT_MODULES_EXEC_H_

#include <memory>

#include "services/agent/module.h"

namespace muster {

// Runs the definition's command as a child process, with RESULTS_DIR and an environment from an
// allow-list. The result is the file that its done file names, or all files if it succeeds without
// a done file. A plugin that fails, exceeds its time limit or writes nothing leads to an error with
// the last output.
std::unique_ptr<Module> MakeExecModule();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULES_EXEC_H_
