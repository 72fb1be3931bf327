// The files that `muster deploy` sends.
#ifndef MUSTER_CLI_COMMANDS_DEPLOYMENT_FILES_H_
#define MUSTER_CLI_COMMANDS_DEPLOYMENT_FILES_H_

#include <google/protobuf/repeated_field.h>

#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// Reads all files of a folder and its subfolders, sorted by their path in it, or one file by its
// name. A file is executable if its owner may execute it. Usage errors: no files; a symbolic link
// or another special file; more than kMaxFiles, or more than fits into a command together.
absl::StatusOr<google::protobuf::RepeatedPtrField<v1::Command::File>> ReadDeploymentFiles(
    const std::string& path);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_DEPLOYMENT_FILES_H_
