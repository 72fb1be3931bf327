#include "cli/commands/conformance_commands.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/conformance_due.h"
#include "cli/commands/deployment_run.h"
#include "cli/commands/job_targets.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/conformance_view.h"
#include "cli/output/format.h"
#include "cli/output/job_next_step.h"
#include "cli/output/job_view.h"
#include "cli/rpc/attached.h"
#include "cli/rpc/conformance_client.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr const char* kType = "conformance";
constexpr int kNodesShown = 10;

struct RunArguments {
  std::string type = kType;
  bool due = false;
  TargetArguments targets;
  RolloutArguments run;
};

struct NodeArguments {
  std::string node;
  std::string max_age;
  bool junit = false;
};

// Returns the nodes whose report is of this deployment.
absl::StatusOr<std::vector<v1::NodeConformance>> ReportsOf(ConformanceClient& client,
                                                           const v1::Deployment& deployment) {
  std::vector<v1::NodeConformance> nodes;
  for (const v1::DeploymentNode& node : deployment.nodes()) {
    if (!node.has_outputs()) continue;
    auto found = client.Get(node.node());
    if (absl::IsNotFound(found.status())) continue;  // its report is unusable
    ASSIGN_OR_RETURN(auto report, std::move(found));
    if (report.deployment() == deployment.deployment()) nodes.push_back(std::move(report));
  }
  return nodes;
}

// A node is in order if the baseline admits it, or no required probe fails while there is none.
bool IsInOrder(const v1::NodeConformance& node) {
  return node.state() == v1::CONFORMANCE_STATE_NO_BASELINE
             ? node.status() != "fail"
             : node.state() == v1::CONFORMANCE_STATE_CONFORMANT;
}

// Returns why a node that has succeeded has no report.
std::string WhyNoReport(const v1::DeploymentNode& node) {
  const bool has_one = std::ranges::any_of(
      node.outputs().outputs(),
      [](const v1::JobRecord::Outputs::Output& output) { return output.name() == "report"; });
  return has_one ? "its output \"report\" is no report of conformance; an earlier one stays"
                 : "its outputs have no report";
}

// Prints the nodes of an ended deployment that sent no report, with their outcomes.
void PrintWithoutReport(Console& console, const v1::Deployment& ended,
                        const std::vector<v1::NodeConformance>& reports) {
  std::set<std::string> reported;
  for (const v1::NodeConformance& report : reports) reported.insert(report.node());
  const int64_t silent = ended.targets() - static_cast<int64_t>(reports.size());
  PrintMessage(
      console,
      absl::StrCat(silent, " of ", ended.targets(), ended.targets() == 1 ? " node" : " nodes",
                   " sent no report. Show all: muster deployment show ", ended.deployment()));
  NextSteps steps;
  int shown = 0;
  for (const v1::DeploymentNode& node : ended.nodes()) {
    if (!node.has_final() || reported.contains(node.node())) continue;
    steps.Add(node.node(), node.final(), /*in_container=*/true);
    if (++shown > kNodesShown) continue;
    const std::string why = FailureText(node.final());
    PrintMessage(console, absl::StrCat(Printable(node.node()), ": ",
                                       why.empty() ? WhyNoReport(node) : Printable(why)));
  }
  for (const std::string& step : steps.Texts(ended.job(), ended.deployment())) {
    PrintMessage(console, " next: " + step);
  }
}

std::string ListJson(const std::vector<v1::NodeConformance>& nodes) {
  Json json = Json::array();
  for (const v1::NodeConformance& node : nodes) json.push_back(ToJson(node));
  return Dump(json);
}

absl::StatusOr<std::vector<std::string>> FetchDueNodes(const OperatorContext& context,
                                                       ConformanceClient& client) {
  ASSIGN_OR_RETURN(const auto attached, ListAllAttached(context));
  ASSIGN_OR_RETURN(const auto reports, client.List());
  absl::Duration age = kReportRenewal;
  const auto baseline = client.GetBaseline();
  if (baseline.ok()) {
    age = std::min(age, FromProto(baseline->max_age()) / 2);
  } else if (ReasonOf(baseline.status()) != "NO_BASELINE") {
    return baseline.status();
  }
  return DueNodes(attached, reports, age, absl::Now());
}

absl::Status CheckRun(const RunArguments& arguments) {
  if (!arguments.due) return CheckTargets(arguments.targets, "muster conformance run");
  if (!HasTargets(arguments.targets)) return absl::OkStatus();
  return UsageError("--due chooses the nodes itself", "Omit the other nodes.");
}

absl::StatusOr<int> Run(Console& console, const CommandLine& line, const RunArguments& arguments) {
  RETURN_IF_ERROR(CheckRun(arguments));
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const auto deployments, DeploymentClient::Open(context));
  ASSIGN_OR_RETURN(auto client, ConformanceClient::Open(context));
  TargetArguments targets = arguments.targets;
  if (arguments.due) {
    ASSIGN_OR_RETURN(targets.nodes, FetchDueNodes(context, client));
    if (targets.nodes.empty()) {
      if (line.json) console.out << ListJson({});
      PrintMessage(console, "No node is due.");
      return kExitOk;
    }
  }
  v1::PlanDeploymentRequest wanted;
  wanted.set_type(arguments.type);
  ASSIGN_OR_RETURN(const auto request, PlannedRequest(
                                           context, *deployments, wanted,
                                           [](v1::Command::Deployment*) {
                                             return absl::OkStatus();
                                           },  // it has no files
                                           targets, arguments.run));
  const auto created = CreateDeployment(console, *deployments, request);
  if (absl::IsCancelled(created.status()) && Interrupted()) return kExitInterrupted;
  RETURN_IF_ERROR(created.status());
  ReportCreated(console, *created);
  const auto ended = AwaitEnd(console, *deployments, created->deployment());
  if (Interrupted()) {
    ReportInterrupted(console, created->deployment());
    return kExitInterrupted;
  }
  RETURN_IF_ERROR(ended.status());
  ASSIGN_OR_RETURN(const auto nodes, ReportsOf(client, *ended));
  if (line.json) {
    console.out << ListJson(nodes);
  } else if (nodes.size() == 1) {
    console.out << NodeConformanceTable(nodes.front(), absl::Now(), console.width);
  } else if (!nodes.empty()) {
    console.out << ConformanceTable(nodes, absl::Now(), console.width);
  }
  const bool all_reported = static_cast<int64_t>(nodes.size()) == ended->targets();
  if (!all_reported) PrintWithoutReport(console, *ended, nodes);
  return all_reported && std::ranges::all_of(nodes, IsInOrder) ? kExitOk : kExitJobFailed;
}

absl::StatusOr<int> Show(Console& console, const CommandLine& line,
                         const NodeArguments& arguments) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(auto client, ConformanceClient::Open(context));
  if (!arguments.node.empty()) {
    ASSIGN_OR_RETURN(const auto node, client.Get(arguments.node));
    console.out << (arguments.junit ? JUnitOf(node)
                    : line.json     ? Dump(ToJson(node))
                                    : NodeConformanceTable(node, absl::Now(), console.width));
    return kExitOk;
  }
  if (arguments.junit) return UsageError("--junit needs a node", "Name the node, then --junit.");
  ASSIGN_OR_RETURN(const auto nodes, client.List());
  if (line.json) {
    console.out << ListJson(nodes);
  } else if (nodes.empty()) {
    PrintMessage(console, "No node has a report. Run the probes: muster conformance run --help");
  } else {
    console.out << ConformanceTable(nodes, absl::Now(), console.width);
  }
  return kExitOk;
}

std::string BaselineText(const v1::ConformanceBaseline& baseline) {
  return absl::StrCat("The baseline is the report of node ", Printable(baseline.node()), " (",
                      Printable(baseline.type()), "). Reports of the last ",
                      HumanDuration(FromProto(baseline.max_age())), " admit their nodes. Set by ",
                      Printable(ShortName(baseline.set_by())), " at ",
                      HumanTime(FromProto(baseline.set_time()), absl::Now()), ".");
}

enum class BaselineAction { kShow, kSet, kRemove };

absl::StatusOr<int> Baseline(Console& console, const CommandLine& line, BaselineAction action,
                             const NodeArguments& arguments) {
  absl::Duration max_age = absl::ZeroDuration();
  if (!arguments.max_age.empty()) {
    ASSIGN_OR_RETURN(max_age, DurationOr(arguments.max_age, max_age, "--max-age"));
  }
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(auto client, ConformanceClient::Open(context));
  ASSIGN_OR_RETURN(const auto baseline, action == BaselineAction::kShow ? client.GetBaseline()
                                        : action == BaselineAction::kSet
                                            ? client.SetBaseline(arguments.node, max_age)
                                            : client.RemoveBaseline());
  if (line.json) {
    console.out << Dump(ToJson(baseline));
  } else if (action == BaselineAction::kRemove) {
    PrintMessage(console, "The baseline is removed: deployments run on all nodes.");
  } else {
    console.out << BaselineText(baseline) << "\n";
  }
  return kExitOk;
}

void AddRun(CommandLine& line, CLI::App& group) {
  CLI::App& command = AddCommand(
      group,
      {.name = "run",
       .summary = "Compare the containers of nodes with the contract",
       .details = "Deploys the type conformance, waits until it has ended, and prints the reports. "
                  "The exit code is 9 if a node sent no report, if the baseline does not admit it, "
                  "or, without a baseline, if a required probe failed.",
       .example = "muster conformance run --node n1"});
  const auto arguments = std::make_shared<RunArguments>();
  command
      .add_option("--type", arguments->type,
                  "The version of the type (default: the newest release of conformance)")
      ->type_name("TYPE");
  AddTargetOptions(command, arguments->targets);
  command.add_flag("--due", arguments->due,
                   "Attached nodes without a report, with one that is older than a week or half of "
                   "--max-age of the baseline, or with a new version of Docker since");
  AddPaceOptions(command, "deployment", arguments->run.ttl, arguments->run.parallel);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Run(console, line, *arguments); });
}

void AddShow(CommandLine& line, CLI::App& group) {
  CLI::App& command =
      AddCommand(group, {.name = "show",
                         .summary = "Show the last report of a node, or the state of all nodes",
                         .example = "muster conformance show n1"});
  const auto arguments = std::make_shared<NodeArguments>();
  command.add_option("NODE", arguments->node, "The node (default: all)")->type_name("");
  command.add_flag("--junit", arguments->junit, "Print the report of the node as JUnit XML");
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Show(console, line, *arguments); });
}

void AddBaseline(CommandLine& line, CLI::App& group, const CommandText& text,
                 BaselineAction action) {
  CLI::App& command = AddCommand(group, text);
  const auto arguments = std::make_shared<NodeArguments>();
  if (action == BaselineAction::kSet) {
    command.add_option("NODE", arguments->node, "The node with the report")
        ->required()
        ->type_name("");
    command
        .add_option("--max-age", arguments->max_age,
                    "Older reports do not admit their nodes (default: 14d)")
        ->type_name("DURATION");
  }
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments, action](Console& console) {
    return Baseline(console, line, action, *arguments);
  });
}

}  // namespace

void AddConformanceCommands(CommandLine& line) {
  CLI::App& group =
      AddCommand(line.app, {.name = "conformance",
                            .summary = "Admit nodes whose containers are as they should be",
                            .example = "muster conformance run --node n1"});
  group.require_subcommand(1);
  AddRun(line, group);
  AddShow(line, group);
  CLI::App& baseline =
      AddCommand(group, {.name = "baseline",
                         .summary = "Set, show and remove the report that nodes are compared with",
                         .example = "muster conformance baseline show"});
  baseline.require_subcommand(1);
  AddBaseline(line, baseline,
              {.name = "set",
               .summary = "Make the last report of a node the baseline",
               .details = "From then on, deployments run only on nodes whose last report is new "
                          "enough, and passes what the baseline passes. --skip-conformance of "
                          "muster deploy deploys without that check.",
               .example = "muster conformance baseline set n1 --max-age 7d"},
              BaselineAction::kSet);
  AddBaseline(line, baseline,
              {.name = "show",
               .summary = "Show the baseline",
               .example = "muster conformance baseline show"},
              BaselineAction::kShow);
  AddBaseline(line, baseline,
              {.name = "remove",
               .summary = "Remove the baseline: deployments run on all nodes",
               .example = "muster conformance baseline remove"},
              BaselineAction::kRemove);
}

}  // namespace muster::cli
