// The description of a backup. A backup is a folder:
//
//   home/          the files of $MUSTER_HOME, by their paths
//   manifest.json  what is in it, and what is not
//   SHA256SUMS     the digests of all files above, in the format of sha256sum; written last
#ifndef MUSTER_CLI_BACKUP_MANIFEST_H_
#define MUSTER_CLI_BACKUP_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::cli {

struct Manifest {
  std::string version;  // of the program that made the backup
  absl::Time time;
  std::string home;                  // the path of the original
  int64_t bytes = 0;                 // of all files
  std::vector<std::string> keys;     // files with keys and credentials
  std::vector<std::string> omitted;  // paths in the home whose content is not in the backup
  // The SHA-256 (hexadecimal) of each file by its path in the home.
  std::map<std::string, std::string> files;
};

// Returns the path in a backup of a file of the home.
std::string PathInBackup(const std::string& folder, const std::string& path);

// Completes the backup in `folder`, durably.
absl::Status WriteManifest(const std::string& folder, const Manifest& manifest);

// INVALID_ARGUMENT (NOT_A_BACKUP) if `folder` has no complete backup; DATA_LOSS (BACKUP_DAMAGED).
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BACKUP_MANIFEST_H_
