// The nodes of a job that have not answered yet.
#ifndef MUSTER_CLI_COMMANDS_WITHOUT_ANSWER_H_
#define MUSTER_CLI_COMMANDS_WITHOUT_ANSWER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/rpc/attached.h"

namespace muster::cli {

// Returns lines such as "not responding: n1, n2 and 3 more", or an empty text without nodes. If
// `attached` is an error, it returns one line with all nodes and the error.
std::string WithoutAnswerText(const std::vector<std::string>& nodes,
                              const absl::StatusOr<AttachedMap>& attached);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_WITHOUT_ANSWER_H_
