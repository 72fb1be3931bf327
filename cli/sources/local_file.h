// The files of this machine that a command brings.
#ifndef MUSTER_CLI_SOURCES_LOCAL_FILE_H_
#define MUSTER_CLI_SOURCES_LOCAL_FILE_H_

#include <google/protobuf/repeated_field.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// A file of a deployment or a build, and its path on this machine.
struct LocalFile {
  v1::Command::File file;
  std::string source;
};

// Replaces size and SHA-256 by the content in as many files as possible, the smallest ones first:
// they make the command larger by at most `bytes`. INVALID_ARGUMENT (SOURCE_UNUSABLE) if a file has
// changed since.
absl::Status PutIntoCommand(size_t bytes, std::vector<LocalFile>& files);

// Returns them for a command.
google::protobuf::RepeatedPtrField<v1::Command::File> FilesOf(const std::vector<LocalFile>& files);

}  // namespace muster::cli

#endif  // MUSTER_CLI_SOURCES_LOCAL_FILE_H_
