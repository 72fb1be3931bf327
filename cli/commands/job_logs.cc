#include "cli/commands/job_logs.h"

#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "cli/commands/command.h"
#include "cli/commands/without_answer.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/job_output.h"
#include "services/common/errors/cli.h"

namespace muster::cli {

void AddLogOptions(CLI::App& command, const std::string& noun, LogArguments& arguments) {
  command.add_flag("-f,--follow", arguments.follow,
                   absl::StrCat("Follow the output until the ", noun, " has ended"));
  command.add_option("--node", arguments.nodes, "Only these nodes, separated by commas")
      ->type_name("NAME,...")
      ->delimiter(',');
  AllowRange(
      *command
           .add_option("--position", arguments.position,
                       "Start after this position, from a record of --json (default: at the first "
                       "record)")
           ->type_name("N"),
      0, std::numeric_limits<int64_t>::max());
}

absl::StatusOr<int> PrintLogs(Console& console, bool json, const OperatorContext& context,
                              JobClient& client, const std::string& job,
                              const LogArguments& arguments,
                              const std::vector<std::string>& targets, const LogWords& words) {
  v1::WatchJobRequest request;
  request.set_job(job);
  request.set_position(arguments.position);
  for (const std::string& node : arguments.nodes) request.add_nodes(node);
  JobOutput output(console, json);
  std::set<std::string> silent(arguments.nodes.begin(), arguments.nodes.end());
  const std::vector<std::string>& awaited = arguments.nodes.empty() ? targets : arguments.nodes;
  WatchReminder reminder;
  if (arguments.follow && !json && !awaited.empty()) {
    reminder = RemindOfSilentNodes(output, context, awaited, words.cancel);
  }
  // Without -f, stop at the first response without records: it has caught up.
  const auto end = client.Watch(
      request,
      [&](const v1::WatchJobResponse& response) {
        output.HandleResponse(response);
        for (const v1::JobRecord& record : response.records()) silent.erase(record.node());
        return arguments.follow || response.records_size() > 0;
      },
      reminder);
  if (Interrupted()) return kExitInterrupted;
  if (!end.ok()) return end.status();
  if (end->state() == v1::JOB_STATE_RUNNING) {
    output.HideSummary();
    PrintMessage(console, absl::StrCat("The ", words.noun, " is still running. Follow it:\n",
                                       words.command));
    return kExitOk;
  }
  // Every target of an ended job has a final record. Earlier records may precede
  // --position.
  if (!silent.empty() && arguments.position == 0) {
    output.HideSummary();
    return FromService(errors::NotATarget(*silent.begin(), words.noun, words.list),
                       absl::StrCat("job ", end->job()));
  }
  const int code = output.Finish(*end);
  if (arguments.nodes.empty()) return code;
  return output.has_failures() ? kExitJobFailed : kExitOk;
}

}  // namespace muster::cli
