// The file of --nodes-file: names of nodes, one on each line.
#ifndef MUSTER_CLI_COMMANDS_NODES_FILE_H_
#define MUSTER_CLI_COMMANDS_NODES_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::cli {

// Returns the names in `text`, each one once, in order. Omits empty lines and lines that begin with
// "#". Fails with a usage error that names `file` and the line if a line is not a name, and if
// there is no name.
absl::StatusOr<std::vector<std::string>> ParseNodesFile(std::string_view text,
                                                        const std::string& file);

// Appends the names in `file`, or on stdin for "-", that `nodes` does not contain. Does nothing if
// `file` is empty.
absl::Status AddNodesOfFile(const std::string& file, std::vector<std::string>* nodes);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_NODES_FILE_H_
