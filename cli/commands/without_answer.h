// The nodes of a job that have not answered yet.
#ifndef MUSTER_CLI_COMMANDS_WITHOUT_ANSWER_H_
#define MUSTER_CLI_COMMANDS_WITHOUT_ANSWER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/rpc/attached.h"

namespace muster::cli {

// Returns lines such as "not responding: n1, n2 and 3 more" for `nodes`, which have not answered.
// Returns an empty text if there are none. If `attached` is an error, returns one line with all of
// `nodes` and the error. The root relay itself reports nodes that are lost while the command runs.
std::string WithoutAnswerText(const std::vector<std::string>& nodes,
                              const absl::StatusOr<AttachedMap>& attached);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_WITHOUT_ANSWER_H_
