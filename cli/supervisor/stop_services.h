// Stops the supervisor of a home and its services.
#ifndef MUSTER_CLI_SUPERVISOR_STOP_SERVICES_H_
#define MUSTER_CLI_SUPERVISOR_STOP_SERVICES_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cli/supervisor/process.h"
#include "services/common/identity/home.h"

namespace muster::supervisor {

// Receives a line for people about the progress.
using ReportProgress = std::function<void(const std::string& line)>;

// Returns the supervisor that holds the lock of the home.
std::optional<Process> RunningSupervisor(const Home& home);

// Returns whether a service of the home is running, with its supervisor or after that was killed.
bool AnyServiceRuns(const Home& home);

// Stops the supervisor and its services, also services that a killed supervisor left running. Each
// service has the time `drain`. Returns false if nothing was running.
bool StopServices(const Home& home, absl::Duration drain, const ReportProgress& report_line);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_STOP_SERVICES_H_
