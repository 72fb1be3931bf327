// Where everything of one installation lies: $MUSTER_HOME.
#ifndef MUSTER_CLI_SUPERVISOR_HOME_H_
#define MUSTER_CLI_SUPERVISOR_HOME_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::supervisor {

// Paths below the folder of state. A value.
class Home {
 public:
  // $MUSTER_HOME, else ~/.muster. NOT_FOUND (NO_HOME) if neither is set.
  static absl::StatusOr<Home> FromEnvironment();

  explicit Home(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string DefaultContext() const { return folder_ + "/context.json"; }

  std::string ConfigFile(std::string_view service) const;     // config/NAME.yaml
  std::string LogFile(std::string_view service) const;        // log/NAME.log
  std::string PidFile(std::string_view service) const;        // run/NAME.pid
  std::string AddressesFile(std::string_view service) const;  // run/NAME.addresses.json
  std::string AllAddressesFile() const { return folder_ + "/run/addresses.json"; }
  std::string SupervisorSocket() const { return folder_ + "/run/supervisor.sock"; }
  std::string SupervisorLock() const { return folder_ + "/run/supervisor.lock"; }
  std::string UpLock() const { return folder_ + "/run/up.lock"; }

  // Makes the folder and those below it that the supervisor uses, each 0700.
  absl::Status MakeFolders() const;

 private:
  std::string folder_;
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_HOME_H_
