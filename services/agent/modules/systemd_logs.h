#ifndef MUSTER_SERVICES_AGENT_MODULES_SYSTEMD_LOGS_H_
#define MUSTER_SERVICES_AGENT_MODULES_SYSTEMD_LOGS_H_

#include <memory>

#include "services/agent/module.h"

namespace muster {

// The journal of this machine as JSON lines, oldest first: journal.json. Bounded by
// max_output_bytes and the time limit; when it does not fit, the newest entries are kept. Without a
// journal it returns an error.
std::unique_ptr<Module> MakeSystemdLogsModule();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULES_SYSTEMD_LOGS_H_
