// The nodes of a job that have not answered yet.
#ifndef MUSTER_CLI_COMMANDS_WITHOUT_ANSWER_H_
#define MUSTER_CLI_COMMANDS_WITHOUT_ANSWER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/output/job_output.h"
#include "cli/rpc/attached.h"
#include "cli/rpc/job_client.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// Returns lines such as "not responding: n1, n2 and 3 more" for `nodes`, which have not answered.
// Returns an empty text if there are none. If `attached` is an error, returns one line with all of
// `nodes` and the error. The root relay itself reports nodes that are lost while the command runs.
std::string WithoutAnswerText(const std::vector<std::string>& nodes,
                              const absl::StatusOr<AttachedMap>& attached);

// Returns a reminder for JobClient::Watch that names the nodes that have not answered, if they are
// not the same as before. `nodes`: the named ones; none for all nodes. `cancel`: the command that
// cancels the job. `output` and `context` outlive the reminder.
WatchReminder RemindOfSilentNodes(JobOutput& output, const OperatorContext& context,
                                  const std::vector<std::string>& nodes, const std::string& cancel);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_WITHOUT_ANSWER_H_
