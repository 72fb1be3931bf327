// The nodes of a job, as options of a command.
#ifndef MUSTER_CLI_COMMANDS_JOB_TARGETS_H_
#define MUSTER_CLI_COMMANDS_JOB_TARGETS_H_

#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/context.h"

namespace muster::cli {

struct TargetArguments {
  bool all = false;
  std::vector<std::string> nodes;
  std::string nodes_file;
  std::vector<std::string> labels;
};

// Adds --node with this help, --nodes-file and --label.
void AddNodeOptions(CLI::App& command, const std::string& node, TargetArguments& arguments);

// Adds --all, and the options of AddNodeOptions.
void AddTargetOptions(CLI::App& command, TargetArguments& arguments);

// Adds --ttl. `what` waits: "job", "deployment" or "build"; `nodes`: "unreachable nodes".
void AddTtlOption(CLI::App& command, std::string_view what, std::string_view nodes,
                  std::string& ttl);

// Adds --ttl and --parallel. `what` waits and runs: "job", "deployment".
void AddPaceOptions(CLI::App& command, std::string_view what, std::string& ttl, int& parallel);

// Returns whether any target is given.
bool HasTargets(const TargetArguments& arguments);

// Returns a usage error unless exactly one kind of target is given. `command`: "muster exec".
absl::Status CheckTargets(const TargetArguments& arguments, std::string_view command);

// The same for a command that has a default. Returns a usage error if several kinds are given.
absl::Status CheckOptionalTargets(const TargetArguments& arguments, std::string_view command);

// Returns the nodes that the arguments name; none for --all. Asks the aggregator for labels.
absl::StatusOr<std::vector<std::string>> NamedNodes(const OperatorContext& context,
                                                    const TargetArguments& arguments);

// Returns the duration in `text`, or `fallback` if it is empty. `option` names it in the error.
absl::StatusOr<absl::Duration> DurationOr(const std::string& text, absl::Duration fallback,
                                          const std::string& option);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_JOB_TARGETS_H_
