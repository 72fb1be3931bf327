// Starts and stops the services of one machine.
#ifndef MUSTER_CLI_SUPERVISOR_INSTALLATION_H_
#define MUSTER_CLI_SUPERVISOR_INSTALLATION_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/supervisor/address_plan.h"
#include "cli/supervisor/stop_services.h"
#include "cli/supervisor/supervisor.h"
#include "services/common/identity/home.h"

namespace muster::supervisor {

struct UpOptions {
  AddressOptions addresses;
  // The value of "retention" in the aggregator's configuration, as YAML; empty: it keeps its value.
  std::string retention;
  absl::Duration limit = absl::Seconds(60);  // for all services to become ready
};

// The addresses of the services, by the names in their addresses files: "aggregator", "status",
// "relay", "jobs", "gateway" and "NAME_inspection", "NAME_health".
using Addresses = std::map<std::string, std::string>;

// Creates missing identities and configuration files, starts the supervisor unless it is running,
// waits until every service is ready, and writes run/addresses.json. Takes over services that are
// still running, so it may be called at any time, also after a kill of all processes. If a service
// does not start, stops all services, restores the configuration files that the options changed,
// and returns FAILED_PRECONDITION (SERVICE_FAILED, or LISTEN_FAILED if its address cannot be used).
absl::StatusOr<Addresses> Up(const Home& home, const UpOptions& options,
                             const ReportProgress& report);

// Stops the supervisor and its services, also services that a killed supervisor left running.
// Returns false if nothing was running.
absl::StatusOr<bool> Down(const Home& home, const ReportProgress& report);

// Returns the configured services for `muster supervise`.
absl::StatusOr<SupervisorOptions> MakeSupervisorOptions(const Home& home);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_INSTALLATION_H_
