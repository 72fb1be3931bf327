#include "cli/commands/deploy_command.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/deployment_files.h"
#include "cli/commands/job_targets.h"
#include "cli/commands/without_answer.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/deployment_view.h"
#include "cli/output/format.h"
#include "cli/output/job_output.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/job_client.h"
#include "cli/rpc/session.h"
#include "cli/rpc/sign_command.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/exact_json.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kDefaultDeadline = absl::Hours(1);
constexpr absl::Duration kDefaultTtl = absl::Seconds(10);
// A reachable node starts the container within this time.
constexpr absl::Duration kStartWithin = absl::Minutes(5);
constexpr absl::Duration kParallelWindow = absl::Hours(12);
constexpr absl::Duration kPoll = absl::Milliseconds(200);
constexpr size_t kMaxValue = size_t{32} << 10;

struct DeployArguments {
  std::string subject;  // a template, or files with --type
  std::string type;
  std::string files_path;
  std::string action;
  TargetArguments targets;
  std::vector<std::string> values;
  std::vector<std::string> texts;
  std::vector<std::string> text_files;
  std::string deadline;
  std::string ttl;
  int parallel = 0;
  bool wait = false;
};

// Splits NAME=VALUE.
absl::StatusOr<std::pair<std::string, std::string>> SplitValue(const std::string& option,
                                                               const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return UsageError(absl::StrCat(option, ": \"", Printable(text), "\" is not NAME=VALUE"),
                      "Name the parameter, such as --set region=eu.");
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

// Returns the parameters as a JSON object.
absl::StatusOr<std::string> ParametersOf(const DeployArguments& arguments) {
  Json json = Json::object();
  const auto set = [&json](const std::string& name, Json value) -> absl::Status {
    if (json.contains(name)) {
      return UsageError(absl::StrCat("the parameter ", Printable(name), " is set twice"),
                        "Set each parameter once.");
    }
    json[name] = std::move(value);
    return absl::OkStatus();
  };
  for (const std::string& text : arguments.values) {
    ASSIGN_OR_RETURN(const auto parts, SplitValue("--set", text));
    // A value that is no JSON is text.
    auto [value, fault] = ParseExactJson<Json>(parts.second);
    if (fault == JsonFault::kNotJson) value = parts.second;
    if (fault == JsonFault::kTooDeep) {
      return UsageError(absl::StrCat("--set: ", Printable(parts.first), " has more than ",
                                     kMaxJsonDepth, " levels"),
                        "Set a value with fewer levels.");
    }
    RETURN_IF_ERROR(set(parts.first, std::move(value)));
  }
  for (const std::string& text : arguments.texts) {
    ASSIGN_OR_RETURN(const auto parts, SplitValue("--set-text", text));
    RETURN_IF_ERROR(set(parts.first, parts.second));
  }
  for (const std::string& text : arguments.text_files) {
    ASSIGN_OR_RETURN(const auto parts, SplitValue("--set-file", text));
    ASSIGN_OR_RETURN(const auto content, ReadFileBounded(parts.second, kMaxValue));
    if (!IsUtf8(content)) {
      return UsageError(absl::StrCat("--set-file: ", Printable(parts.second), " is not UTF-8"),
                        "Values are JSON: encode other bytes, for instance with base64.");
    }
    RETURN_IF_ERROR(set(parts.first, content));
  }
  return ExactJsonText(json);
}

absl::StatusOr<v1::Command> MakeCommand(const DeployArguments& arguments,
                                        const v1::DeploymentPlan& plan, absl::Duration ttl) {
  const absl::Duration of_plan =
      plan.has_time_limit() ? FromProto(plan.time_limit()) : kDefaultDeadline;
  ASSIGN_OR_RETURN(const auto deadline, DurationOr(arguments.deadline, of_plan, "--deadline"));
  v1::Command command;
  command.set_action(std::string(kDeploymentAction));
  v1::Command::Container& container = *command.mutable_container();
  container.set_image(plan.image());
  *container.mutable_deployment() = plan.deployment();
  container.mutable_deployment()->set_deployment(NewCommandId());
  const absl::Time now = absl::Now();
  ToProto(now, command.mutable_not_before());
  ToProto(now + (arguments.parallel > 0 ? kParallelWindow : std::max(ttl, kStartWithin)),
          command.mutable_not_after());
  ToProto(deadline, command.mutable_time_limit());
  command.mutable_targets()->set_all(arguments.targets.all);
  return command;
}

// Reads the parameters and files. With --type, the argument names files.
absl::StatusOr<v1::PlanDeploymentRequest> Wanted(const DeployArguments& arguments) {
  v1::PlanDeploymentRequest wanted;
  wanted.set_type(arguments.type);
  if (arguments.type.empty()) wanted.set_template_(arguments.subject);
  wanted.set_action(arguments.action);
  ASSIGN_OR_RETURN(*wanted.mutable_parameters(), ParametersOf(arguments));
  const std::string& files = arguments.type.empty() ? arguments.files_path : arguments.subject;
  if (files.empty()) return wanted;
  ASSIGN_OR_RETURN(*wanted.mutable_files(), ReadDeploymentFiles(files));
  return wanted;
}

// Sets `*names` to the nodes; none for all nodes.
absl::StatusOr<v1::Deployment> Create(const OperatorContext& context, DeploymentClient& client,
                                      const DeployArguments& arguments,
                                      std::vector<std::string>* names) {
  ASSIGN_OR_RETURN(const auto wanted, Wanted(arguments));
  ASSIGN_OR_RETURN(const auto ttl, DurationOr(arguments.ttl, kDefaultTtl, "--ttl"));
  ASSIGN_OR_RETURN(const auto plan, client.Plan(wanted));
  ASSIGN_OR_RETURN(auto command, MakeCommand(arguments, plan, ttl));
  ASSIGN_OR_RETURN(auto nodes, NamedNodes(context, arguments.targets));
  ASSIGN_OR_RETURN(auto signed_command,
                   SignForNodes(context, std::move(command), std::move(nodes)));
  v1::CreateDeploymentRequest request;
  *request.mutable_command() = std::move(signed_command.command);
  request.mutable_nodes()->Assign(signed_command.nodes.begin(), signed_command.nodes.end());
  *names = std::move(signed_command.nodes);
  request.set_parallel(arguments.parallel);
  ToProto(ttl, request.mutable_wait());
  return client.Create(request);
}

// Waits until `holds` for the deployment. CANCELLED after an interrupt.
absl::Status Await(DeploymentClient& client, const std::string& id,
                   bool (*holds)(const v1::Deployment&)) {
  while (true) {
    ASSIGN_OR_RETURN(const auto deployment, client.GetWithoutNodes(id));
    if (holds(deployment)) return absl::OkStatus();
    if (!SleepUnlessInterrupted(kPoll)) return absl::CancelledError("interrupted");
  }
}

// Prints the output of the containers while they run, and the nodes that do not answer. Without a
// job, the relay refused the command.
absl::Status FollowOutput(Console& console, const OperatorContext& context,
                          const v1::Deployment& created, const std::vector<std::string>& nodes,
                          bool parallel) {
  JobClient jobs(context);
  JobOutput output(console, false, JobReport::kOutput);
  v1::WatchJobRequest request;
  request.set_job(created.job());
  WatchReminder reminder;
  if (!parallel) {  // else the other nodes wait for their turn
    reminder = RemindOfSilentNodes(output, context, nodes,
                                   "muster deployment cancel " + created.deployment());
  }
  const auto end = jobs.Watch(
      request,
      [&](const v1::WatchJobResponse& response) {
        output.HandleResponse(response);
        return true;
      },
      reminder);
  if (end.ok()) output.Finish(*end);
  return ReasonOf(end.status()) == "JOB_NOT_FOUND" ? absl::OkStatus() : end.status();
}

// Waits for the end of a deployment, and returns it with its nodes.
absl::StatusOr<v1::Deployment> Follow(Console& console, const OperatorContext& context,
                                      DeploymentClient& client, const v1::Deployment& created,
                                      const std::vector<std::string>& nodes,
                                      const DeployArguments& arguments, bool json) {
  const std::string& id = created.deployment();
  if (!json) {
    RETURN_IF_ERROR(Await(client, id, [](const v1::Deployment& deployment) {
      return deployment.state() != v1::DEPLOYMENT_STATE_PENDING;
    }));
    RETURN_IF_ERROR(FollowOutput(console, context, created, nodes, arguments.parallel > 0));
  }
  RETURN_IF_ERROR(Await(client, id, HasEnded));
  return client.Get(id);
}

absl::StatusOr<int> Deploy(Console& console, const CommandLine& line,
                           const DeployArguments& arguments) {
  RETURN_IF_ERROR(CheckTargets(arguments.targets, "muster deploy"));
  if (arguments.subject.empty() && arguments.type.empty()) {
    return UsageError("give a template, or --type", "See the example in `muster deploy --help`.");
  }
  if (!arguments.type.empty() && !arguments.files_path.empty()) {
    return UsageError("--files is for a template", "With --type, give the files as the argument.");
  }
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const auto client, DeploymentClient::Open(context));
  std::vector<std::string> nodes;
  ASSIGN_OR_RETURN(const auto created, Create(context, *client, arguments, &nodes));
  if (!arguments.wait) {
    console.out << (line.json ? Dump(ToJson(created)) : absl::StrCat(created.deployment(), "\n"));
    return kExitOk;
  }
  PrintMessage(console, absl::StrCat("Deployment ", created.deployment(), " of ",
                                     SubjectOf(created), " is stored."));
  const auto ended = Follow(console, context, *client, created, nodes, arguments, line.json);
  if (Interrupted()) {
    PrintMessage(console,
                 absl::StrCat("\nThe deployment continues. Show it: muster deployment show ",
                              created.deployment(), "\nCancel it: muster deployment cancel ",
                              created.deployment()));
    return kExitInterrupted;
  }
  RETURN_IF_ERROR(ended.status());
  console.out << (line.json ? Dump(ToJson(*ended)) : DeploymentTable(*ended, {}, console.width));
  return ended->state() == v1::DEPLOYMENT_STATE_SUCCEEDED ? kExitOk : kExitJobFailed;
}

void AddContentOptions(CLI::App& command, DeployArguments& arguments) {
  command
      .add_option(
          "TEMPLATE|FILES", arguments.subject,
          "The template as NAME@VERSION; NAME@1.2 is the newest version 1.2.x, and NAME the "
          "newest version. With --type: the folder or file that an ad-hoc type runs")
      ->type_name("");
  command
      .add_option("--type", arguments.type,
                  "Deploy a template type alone: its version, as for a template")
      ->type_name("TYPE");
  command
      .add_option("--files", arguments.files_path,
                  "The folder or file for a template of an ad-hoc type")
      ->type_name("PATH");
  command.add_option("--action", arguments.action, "An action of the type (default: deploy)")
      ->type_name("ACTION");
  command
      .add_option("--set", arguments.values,
                  "The value of a parameter: JSON, or text that is no JSON")
      ->type_name("NAME=VALUE");
  command.add_option("--set-text", arguments.texts, "A value that is always text")
      ->type_name("NAME=TEXT");
  command.add_option("--set-file", arguments.text_files, "A value that is the text of a file")
      ->type_name("NAME=FILE");
}

void AddRunOptions(CLI::App& command, DeployArguments& arguments) {
  command
      .add_option("--deadline", arguments.deadline,
                  "The time limit on each node, from the start of the container (default: that of "
                  "the template or type, else 1h)")
      ->type_name("DURATION");
  command
      .add_option("--ttl", arguments.ttl,
                  "How long the deployment waits for unreachable nodes (default: 10s)")
      ->type_name("DURATION");
  CLI::Option* parallel = command.add_option(
      "--parallel", arguments.parallel, "The maximum number of nodes that run it at the same time");
  parallel->type_name("N");
  AllowRange(*parallel, 1, 1'000'000);
  command.add_flag("--wait", arguments.wait,
                   "Print the output, and wait until the deployment has ended");
}

}  // namespace

void AddDeployCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "deploy",
       .summary = "Run a template in a container on nodes",
       .details =
           "The parameters are checked before anything runs, and again on each node. The "
           "deployment "
           "is signed with your identity, and the policy of each node decides whether it runs.\n"
           "Prints the id of the deployment; with --wait its output, and what became of it. With "
           "--wait the exit code is 9 unless it succeeded on every node.",
       .example = "muster deploy web@1.4 --node n1 --set region=eu --wait\n"
                  "muster deploy checks/ --type shell --label rack=b1"});
  const auto arguments = std::make_shared<DeployArguments>();
  AddContentOptions(command, *arguments);
  AddTargetOptions(command, arguments->targets);
  AddRunOptions(command, *arguments);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Deploy(console, line, *arguments); });
}

}  // namespace muster::cli
