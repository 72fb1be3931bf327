// Files of the supervisor in $MUSTER_HOME; identity/home.h names the other files.
#ifndef MUSTER_CLI_SUPERVISOR_HOME_H_
#define MUSTER_CLI_SUPERVISOR_HOME_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/identity/home.h"

namespace muster::supervisor {

// Returns $MUSTER_HOME, else ~/.muster. NOT_FOUND (NO_HOME) if neither is set.
absl::StatusOr<Home> HomeFromEnvironment();

// Return the files of a service ("aggregator"), or of the supervisor itself ("supervisor").
std::string ConfigFile(const Home& home, std::string_view service);     // config/NAME.yaml
std::string LogFile(const Home& home, std::string_view service);        // log/NAME.log
std::string PidFile(const Home& home, std::string_view service);        // run/NAME.pid
std::string AddressesFile(const Home& home, std::string_view service);  // run/NAME.addresses.json

std::string AllAddressesFile(const Home& home);  // run/addresses.json
std::string SupervisorSocket(const Home& home);  // run/supervisor.sock
std::string SupervisorLock(const Home& home);    // run/supervisor.lock
std::string UpLock(const Home& home);            // run/up.lock

// Returns the folder of a restore that has not ended: .restoring
std::string UnfinishedRestore(const Home& home);

// Creates the folders of these files, each with mode 0700.
absl::Status MakeHomeFolders(const Home& home);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_HOME_H_
