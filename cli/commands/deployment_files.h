// The files that `muster deploy` and `muster template build` send.
#ifndef MUSTER_CLI_COMMANDS_DEPLOYMENT_FILES_H_
#define MUSTER_CLI_COMMANDS_DEPLOYMENT_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/output/console.h"
#include "cli/sources/local_file.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// Reads all files of a folder and its subfolders, sorted by their path in it, or one file by its
// name, as a source of a template (cli/sources). All errors are usage errors.
absl::StatusOr<std::vector<LocalFile>> ReadDeploymentFiles(const std::string& path);

// Puts small files into a command, which has `used` bytes without them, and uploads the contents of
// the others that the jobs service does not have. Shows the progress. A usage error if a file has
// changed since it was read.
absl::Status SendFiles(Console& console, const OperatorContext& context, size_t used,
                       std::vector<LocalFile>& files);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_DEPLOYMENT_FILES_H_
