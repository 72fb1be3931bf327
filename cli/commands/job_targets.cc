#include "cli/commands/job_targets.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands/command.h"
#include "cli/commands/labels.h"
#include "cli/commands/nodes_file.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/rpc/client.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

absl::StatusOr<std::vector<std::string>> LabelledNodes(const OperatorContext& context,
                                                       const std::vector<std::string>& labels) {
  v1::ListEnrolledNodesRequest request;
  RETURN_IF_ERROR(AddLabels(labels, request.mutable_labels()));
  Client client(context);
  ASSIGN_OR_RETURN(const auto enrolled, client.ListEnrolledNodes(std::move(request)));
  std::vector<std::string> nodes;
  for (const v1::EnrolledNode& node : enrolled) {
    if (!node.revoked() && !node.is_relay()) nodes.push_back(node.name());
  }
  if (nodes.empty()) {
    return FromService(errors::NoNodeHasLabels(absl::StrJoin(labels, ",")), "the list of nodes");
  }
  return nodes;
}

// Returns the number of different kinds of targets that are given.
int KindsOf(const TargetArguments& arguments) {
  const bool named = !arguments.nodes.empty() || !arguments.nodes_file.empty();
  return static_cast<int>(arguments.all) + static_cast<int>(named) +
         static_cast<int>(!arguments.labels.empty());
}

}  // namespace

void AddTargetOptions(CLI::App& command, TargetArguments& arguments) {
  command.add_flag("--all", arguments.all,
                   "Every node that is attached, or was attached in the last week");
  AddNodeOptions(command, "Node names, separated by commas", arguments);
}

void AddTtlOption(CLI::App& command, std::string_view what, std::string_view nodes,
                  std::string& ttl) {
  command
      .add_option("--ttl", ttl,
                  absl::StrCat("How long the ", ToAbsl(what), " waits for ", ToAbsl(nodes),
                               " (default: 10s)"))
      ->type_name("DURATION");
}

void AddPaceOptions(CLI::App& command, std::string_view what, std::string& ttl, int& parallel) {
  AddTtlOption(command, what, "unreachable nodes", ttl);
  CLI::Option* limit = command.add_option(
      "--parallel", parallel, "The maximum number of nodes that run it at the same time");
  limit->type_name("N");
  AllowRange(*limit, 1, 1'000'000);
}

void AddNodeOptions(CLI::App& command, const std::string& node, TargetArguments& arguments) {
  command.add_option("--node", arguments.nodes, node)->type_name("NAME,...")->delimiter(',');
  command
      .add_option("--nodes-file", arguments.nodes_file,
                  "A file with further names of nodes, one on each line; - for stdin")
      ->type_name(kFileValue);
  command.add_option("--label", arguments.labels, "Enrolled nodes with all given labels")
      ->type_name("KEY=VALUE");
}

bool HasTargets(const TargetArguments& arguments) { return KindsOf(arguments) > 0; }

absl::Status CheckOptionalTargets(const TargetArguments& arguments, std::string_view command) {
  if (KindsOf(arguments) <= 1) return absl::OkStatus();
  return UsageError("give only one of --label, and --node or --nodes-file",
                    absl::StrCat("See the example in `", ToAbsl(command), " --help`."));
}

absl::Status CheckTargets(const TargetArguments& arguments, std::string_view command) {
  const int kinds = KindsOf(arguments);
  if (kinds == 1) return absl::OkStatus();
  return UsageError(absl::StrCat(kinds == 0 ? "give" : "give only",
                                 " one of --all, --label, and --node or --nodes-file"),
                    absl::StrCat("See the example in `", ToAbsl(command), " --help`."));
}

absl::StatusOr<std::vector<std::string>> NamedNodes(const OperatorContext& context,
                                                    const TargetArguments& arguments) {
  if (!arguments.labels.empty()) return LabelledNodes(context, arguments.labels);
  std::vector<std::string> nodes = arguments.nodes;
  RETURN_IF_ERROR(AddNodesOfFile(arguments.nodes_file, &nodes));
  return nodes;
}

absl::StatusOr<absl::Duration> DurationOr(const std::string& text, absl::Duration fallback,
                                          const std::string& option) {
  if (text.empty()) return fallback;
  const auto duration = DurationArgument(text);
  if (!duration.ok()) return AsUsageError(duration.status(), option);
  return duration;
}

}  // namespace muster::cli
