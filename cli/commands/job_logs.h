// The output of a job or a deployment: muster job logs, muster deployment logs.
#ifndef MUSTER_CLI_COMMANDS_JOB_LOGS_H_
#define MUSTER_CLI_COMMANDS_JOB_LOGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "cli/output/console.h"
#include "cli/rpc/job_client.h"
#include "services/common/identity/context.h"

namespace muster::cli {

struct LogArguments {
  bool follow = false;
  int64_t position = 0;
  std::vector<std::string> nodes;
};

// The words of the command.
struct LogWords {
  std::string noun;     // "job"
  std::string command;  // that follows this one: "muster job logs -f ID"
  std::string list;     // that lists its nodes: "muster job logs ID --json"
  std::string cancel;   // that cancels it
};

// Adds --follow, --node and --position. `noun`: "job" or "deployment".
void AddLogOptions(CLI::App& command, const std::string& noun, LogArguments& arguments);

// Prints the stored output of a job, or follows it until the job has ended. While it follows, it
// names those of `targets` that do not answer, for a while without output. `targets`: at least the
// nodes without a record; empty: not known. Returns the exit code.
absl::StatusOr<int> PrintLogs(Console& console, bool json, const OperatorContext& context,
                              JobClient& client, const std::string& job,
                              const LogArguments& arguments,
                              const std::vector<std::string>& targets, const LogWords& words);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_JOB_LOGS_H_
