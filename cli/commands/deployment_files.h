// The files that `muster deploy` sends.
#ifndef MUSTER_CLI_COMMANDS_DEPLOYMENT_FILES_H_
#define MUSTER_CLI_COMMANDS_DEPLOYMENT_FILES_H_

#include <google/protobuf/repeated_field.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// A file of a deployment, and its path on this machine.
struct LocalFile {
  v1::Command::File file;
  std::string source;
};

// Reads all files of a folder and its subfolders, sorted by their path in it, or one file by its
// name. A file is executable if its owner may execute it. Each has its size and SHA-256 instead of
// its content, unless it is empty. Usage errors: no files; a symbolic link or another special file;
// files that CheckFiles refuses; more than kMaxContentSize together.
absl::StatusOr<std::vector<LocalFile>> ReadDeploymentFiles(const std::string& path);

// Replaces size and SHA-256 by the content in as many files as possible, the smallest ones first:
// they make the command larger by at most `bytes`. A usage error if a file has changed since.
absl::Status PutIntoCommand(size_t bytes, std::vector<LocalFile>& files);

// Returns them for a command.
google::protobuf::RepeatedPtrField<v1::Command::File> FilesOf(const std::vector<LocalFile>& files);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_DEPLOYMENT_FILES_H_
