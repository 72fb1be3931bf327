// Nodes of a run that cannot deliver with the certificate of a node.
#ifndef MUSTER_CLI_COMMANDS_UNKNOWN_NODES_H_
#define MUSTER_CLI_COMMANDS_UNKNOWN_NODES_H_

#include <string>
#include <vector>

#include "muster/v1/enrollment.pb.h"

namespace muster::cli {

// Returns a warning for each of `nodes` that is not an enrolled node: its name may be wrong. The
// first ten are listed. A fleet without enrolled nodes uses run credentials only: no warnings.
std::vector<std::string> UnknownNodeWarnings(const std::vector<std::string>& nodes,
                                             const std::vector<v1::EnrolledNode>& enrolled);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_UNKNOWN_NODES_H_
