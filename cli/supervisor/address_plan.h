// The addresses at which the services listen, and at which clients reach them.
#ifndef MUSTER_CLI_SUPERVISOR_ADDRESS_PLAN_H_
#define MUSTER_CLI_SUPERVISOR_ADDRESS_PLAN_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/supervisor/service_files.h"
#include "services/common/base/text_values.h"
#include "services/common/base/unique_fd.h"
#include "services/common/identity/home.h"

namespace muster::supervisor {

// The options of the user. An omitted option keeps its value in the configuration files, or gets
// the default if there are none.
struct AddressOptions {
  std::vector<std::string> advertise;  // names or addresses by which clients reach this machine
  std::string bind;                    // the local address to listen on
  // 7440 means: aggregator 7440, status 7441, status pages 7442, gateway 7443, joining 7444, relay
  // 7445, jobs 7446, legacy clients 7449 and 7450-7949, status listeners of runs 7950-8049. 0: any
  // free ports; a configured port that is free stays. Without it, status pages use 8002 and
  // 8010-8109.
  std::optional<int> port;
  std::map<std::string, int, std::less<>> service_port;  // of one service; overrides `port`
  std::string legacy_ports;                              // "A-B", or "0" for any free ports
  // The host name pattern of runs for legacy clients, on one port (run_host.h). Empty: each run has
  // a separate port.
  std::optional<std::string> legacy_host;
  std::optional<int> legacy_port;  // of the host names; 0 as above

  bool empty() const {
    return advertise.empty() && bind.empty() && !port && service_port.empty() &&
           legacy_ports.empty() && !legacy_host && !legacy_port;
  }
};

struct AddressPlan {
  std::map<std::string, HostPort, std::less<>> listen;  // by service
  std::vector<std::string> advertise;
  std::string legacy_ports;
  std::string legacy_host;
  int legacy_port = 0;
  HostPort join;             // for joining machines without a certificate
  HostPort status_listener;  // for GET /status and the dashboard
  std::string status_ports;  // for the status listeners of runs
  // Sockets that reserve the chosen free ports as long as they are open, so that no other program
  // that chooses ports takes one before its service listens. A service binds to its port
  // nevertheless: the sockets do not listen and allow it (SO_REUSEADDR).
  std::vector<UniqueFd> reservations;
};

// Checks the texts of the options. Returns INVALID_ARGUMENT (INVALID_HOST, INVALID_PORT_RANGE,
// INVALID_HOST_PATTERN) with the name of the option.
absl::Status CheckAddressOptions(const AddressOptions& options);

// Makes a plan from the options, which it checks, and the existing configuration files. `running`:
// the services of this home use their configured ports. Returns also INVALID_ARGUMENT
// (INVALID_CONFIG) or RESOURCE_EXHAUSTED (NO_FREE_PORT).
absl::StatusOr<AddressPlan> PlanAddresses(const Home& home, const AddressOptions& options,
                                          bool running);

// Returns the address at which programs on this machine reach a listener: "127.0.0.1:7440".
std::string LocalTarget(const HostPort& listen);

// Returns the values of the plan for the configuration file of a service.
ConfigValues AddressValues(const AddressPlan& plan, std::string_view service);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_ADDRESS_PLAN_H_
