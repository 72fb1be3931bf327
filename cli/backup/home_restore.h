// Copies a backup to $MUSTER_HOME.
#ifndef MUSTER_CLI_BACKUP_HOME_RESTORE_H_
#define MUSTER_CLI_BACKUP_HOME_RESTORE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/backup/manifest.h"

namespace muster::cli {

// Copies the backup in `folder` to `home` (without a slash at the end), which must not exist or be
// empty, and compares each file with its checksum. The files are complete before they appear in
// `home`: after an error or a crash it has at most an unfinished restore (supervisor/home.h), which
// the next one replaces. If the crash was while they appeared, `muster up` refuses the home
// (RESTORE_UNFINISHED). The change feed gets another identity.
absl::StatusOr<Manifest> RestoreHome(const std::string& folder, const std::string& home);

// Returns the files in `home/` of a backup that its SHA256SUMS does not list. They are not
// restored.
std::vector<std::string> UnlistedFiles(const std::string& folder, const Manifest& manifest);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BACKUP_HOME_RESTORE_H_
