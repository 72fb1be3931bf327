#ifndef MUSTER_SERVICES_AGENT_MODULES_SYSTEMD_LOGS_H_
#define MUSTER_SERVICES_AGENT_MODULES_SYSTEMD_LOGS_H_

#include <memory>

#include "services/agent/module.h"

namespace muster {

// The journal of this machine as JSON lines, oldest first: journal.json. Keeps the
// newest entries within max_output_bytes and the time limit. Fails with JOURNAL_EMPTY without a
// journal.
std::unique_ptr<Module> MakeSystemdLogsModule();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULES_SYSTEMD_LOGS_H_
