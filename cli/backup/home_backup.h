// Copies $MUSTER_HOME to a folder while the services run.
#ifndef MUSTER_CLI_BACKUP_HOME_BACKUP_H_
#define MUSTER_CLI_BACKUP_HOME_BACKUP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/backup/manifest.h"

namespace muster::cli {

// A stored result or archive that is missing or differs from its record.
struct DamagedFile {
  std::string path;  // below the home; empty if it is missing
  std::string run;
  std::string plugin;  // empty for the archive, as the node
  std::string node;

  bool operator==(const DamagedFile&) const = default;
};

struct BackupReport {
  Manifest manifest;
  std::vector<DamagedFile> damaged;
};

// Copies `home` (without a slash at the end) to `folder`, which must not exist or be empty. The
// copy of the database is one consistent state, and the copy has every blob that its records name.
// home_files.h states what is not copied.
absl::StatusOr<BackupReport> BackUpHome(const std::string& home, const std::string& folder,
                                        absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BACKUP_HOME_BACKUP_H_
