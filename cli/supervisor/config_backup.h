// Undoes changes of the configuration files.
#ifndef MUSTER_CLI_SUPERVISOR_CONFIG_BACKUP_H_
#define MUSTER_CLI_SUPERVISOR_CONFIG_BACKUP_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/identity/home.h"

namespace muster::supervisor {

// The content of the configuration files of the services at one time.
class ConfigBackup {
 public:
  static absl::StatusOr<ConfigBackup> Read(const Home& home);

  // Restores the content, and removes files that did not exist.
  absl::Status Restore() const;

 private:
  std::map<std::string, std::optional<std::string>> texts_;  // by file; nothing: no file
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_CONFIG_BACKUP_H_
