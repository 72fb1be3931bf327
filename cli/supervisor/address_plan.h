// Which service listens where, and by what names it is reached.
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
#include "services/common/identity/home.h"

namespace muster::supervisor {

// What the user asked for; what is left out stays as it is in the configuration files, or becomes
// the default where there are none.
struct AddressOptions {
  std::vector<std::string> advertise;  // names or addresses by which clients reach this machine
  std::string bind;                    // the local address to listen on
  // 7440 stands for aggregator 7440, status 7441, status pages 7442, gateway 7443, joining 7444,
  // relay 7445, old clients 7449 and 7450-7949, runs' own status pages 7950-8049. 0: any free
  // ports, chosen once and then kept. Without it status pages are at 8002 and 8010-8109.
  std::optional<int> port;
  std::map<std::string, int, std::less<>> service_port;  // of one service, before `port`
  std::string legacy_ports;                              // "A-B", or "0" for any
  // How old clients find a run on one port (run_host.h); empty: each run has a port of its own.
  std::optional<std::string> legacy_host;
  std::optional<int> legacy_port;  // that one port; 0 as above

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
  HostPort join;             // where machines join that have no certificate yet
  HostPort status_pages;     // where the gateway answers GET /status and serves the dashboard
  std::string status_ports;  // of runs that have such a listener of their own
};

// Reads the configuration files that are there. INVALID_ARGUMENT (INVALID_CONFIG,
// INVALID_PORT_RANGE, INVALID_HOST_PATTERN); RESOURCE_EXHAUSTED (NO_FREE_PORT).
absl::StatusOr<AddressPlan> PlanAddresses(const Home& home, const AddressOptions& options);

// "127.0.0.1:7440": how this machine's own programs reach what listens there.
std::string LocalTarget(const HostPort& listen);

// What of the plan stands in the configuration file of a service.
ConfigValues AddressValues(const AddressPlan& plan, std::string_view service);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_ADDRESS_PLAN_H_
