// Fetches one commit of a git repository by https.
#ifndef MUSTER_CLI_SOURCES_GIT_SOURCE_H_
#define MUSTER_CLI_SOURCES_GIT_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/sources/git_address.h"
#include "cli/sources/source_files.h"

namespace muster::cli {

struct GitOptions {
  std::vector<std::string> hosts;  // the only ones that are asked; empty: all
  std::string ca_file;             // of the servers, in PEM; empty: those of the system
  absl::Duration time_limit = absl::Minutes(5);
  int64_t max_file = int64_t{1} << 30;  // bytes of a file that git writes, such as a pack
  std::string program = "/usr/bin/git";
};

// Adds the files of the commit, and returns its id. Runs the program git with an environment of its
// own and without any configuration of this machine: no hooks, filters, submodules, Git LFS or
// credentials, no protocol but https, and no redirect. The files are read as those of an archive
// are (source_archive.h). Blocks for at most the time limit, and leaves nothing on the disk.
// INVALID_ARGUMENT (SOURCE_REFUSED, SOURCE_UNUSABLE), FAILED_PRECONDITION (GIT_FAILED), CANCELLED
// after an interrupt.
absl::StatusOr<std::string> ReadGitSource(const GitAddress& address, const GitOptions& options,
                                          SourceFiles& files);

}  // namespace muster::cli

#endif  // MUSTER_CLI_SOURCES_GIT_SOURCE_H_
