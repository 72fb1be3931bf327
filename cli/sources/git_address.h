// The address of a git source.
#ifndef MUSTER_CLI_SOURCES_GIT_ADDRESS_H_
#define MUSTER_CLI_SOURCES_GIT_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::cli {

struct GitAddress {
  std::string url;     // https://HOST[:PORT]/PATH
  std::string host;    // in lower case, without a port
  std::string ref;     // a branch, a tag or a commit
  std::string folder;  // in the repository; empty: all of it
};

// Returns whether a source is an address of git and not a file.
bool IsGitAddress(std::string_view source);

// Parses git+https://HOST[:PORT]/PATH@REF[#FOLDER]. Nothing in the result can be taken for an
// option of git. INVALID_ARGUMENT (SOURCE_UNUSABLE), also for a user or a password in the address:
// it would be visible in the list of processes.
absl::StatusOr<GitAddress> ParseGitAddress(std::string_view source);

}  // namespace muster::cli

#endif  // MUSTER_CLI_SOURCES_GIT_ADDRESS_H_
