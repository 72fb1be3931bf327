// Bringing the services of one machine up, and down again.
#ifndef MUSTER_CLI_SUPERVISOR_INSTALLATION_H_
#define MUSTER_CLI_SUPERVISOR_INSTALLATION_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/supervisor/address_plan.h"
#include "cli/supervisor/supervisor.h"
#include "services/common/identity/home.h"

namespace muster::supervisor {

// A line for people about what is being done.
using Tell = std::function<void(const std::string& line)>;

struct UpOptions {
  AddressOptions addresses;
  absl::Duration limit = absl::Seconds(60);  // until every service has to be ready
};

// Where the services listen, by the names in their addresses files: "aggregator", "status",
// "gateway" and "NAME-inspection", "NAME-health".
using Addresses = std::map<std::string, std::string>;

// Makes what the home lacks (identities, configuration files), starts the supervisor unless it
// runs, waits until every service is ready, and writes run/addresses.json. May be called at any
// time, also after a kill of everything: services that run on are taken over. FAILED_PRECONDITION
// (SERVICE_FAILED) with the end of its log for a service that does not start; then all is stopped
// again.
absl::StatusOr<Addresses> Up(const Home& home, const UpOptions& options, const Tell& tell);

// Ends the supervisor and its services, also those that a killed supervisor left running. False if
// nothing ran.
absl::StatusOr<bool> Down(const Home& home, const Tell& tell);

// What `muster supervise` runs: the services as they are configured.
absl::StatusOr<SupervisorOptions> MakeSupervisorOptions(const Home& home);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_INSTALLATION_H_
