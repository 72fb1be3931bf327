#include "cli/commands/deployment_commands.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/job_logs.h"
#include "cli/commands/successor_commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/deployment_view.h"
#include "cli/output/format.h"
#include "cli/output/job_view.h"
#include "cli/output/table.h"
#include "cli/rpc/attached.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/job_client.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

// Enough of an id to name it in later commands; the whole one is in --json.
constexpr size_t kShownDigits = 12;
constexpr int kSilentNamed = 10;

struct DeploymentArguments {
  std::string deployment;
  int limit = 20;
  LogArguments logs;
};

using Handler = absl::StatusOr<int> (*)(Console&, const CommandLine&, const DeploymentArguments&);

// The clients of one command.
struct Clients {
  std::unique_ptr<DeploymentClient> deployments;
  std::unique_ptr<JobClient> jobs;
  OperatorContext context;
};

absl::StatusOr<Clients> OpenClients(const CommandLine& line) {
  Clients clients;
  ASSIGN_OR_RETURN(clients.context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(clients.deployments, DeploymentClient::Open(clients.context));
  clients.jobs = std::make_unique<JobClient>(clients.context);
  return clients;
}

absl::StatusOr<v1::Deployment> Find(DeploymentClient& client, const std::string& text) {
  ASSIGN_OR_RETURN(const auto id, client.Resolve(text));
  return client.Get(id);
}

absl::StatusOr<int> List(Console& console, const CommandLine& line,
                         const DeploymentArguments& arguments) {
  ASSIGN_OR_RETURN(const auto clients, OpenClients(line));
  v1::ListDeploymentsRequest request;
  request.set_page_size(arguments.limit);
  ASSIGN_OR_RETURN(const auto list, clients.deployments->List(request));
  if (line.json) {
    Json json = Json::array();
    for (const v1::Deployment& deployment : list.deployments()) {
      json.push_back(ListedJson(deployment));
    }
    console.out << Dump(json);
    return kExitOk;
  }
  if (list.deployments().empty()) {
    PrintMessage(console, "There are no deployments. Create one: muster deploy --help");
    return kExitOk;
  }
  Table table(
      {{"DEPLOYMENT"}, {"ACTION"}, {"STATE"}, {"CREATED"}, {"BY"}, {"NODES"}, {"TEMPLATE"}});
  for (const v1::Deployment& deployment : list.deployments()) {
    table.AddRow(
        {deployment.deployment().substr(0, kShownDigits), deployment.action(),
         StateWord(deployment.state()), HumanTime(FromProto(deployment.create_time()), absl::Now()),
         ShortName(deployment.created_by()),
         absl::StrCat(deployment.succeeded(), "/", deployment.targets()), SubjectOf(deployment)});
  }
  console.out << table.Render(console.width);
  if (!list.next_page_token().empty()) {
    PrintMessage(console, absl::StrCat("These are the newest ", list.deployments_size(),
                                       ". List more: --limit N"));
  }
  return kExitOk;
}

// Returns why nodes have not ended: the relays and nodes that the root relay has lost.
std::vector<std::string> WhyWaiting(JobClient& jobs, const v1::Deployment& deployment) {
  if (deployment.state() != v1::DEPLOYMENT_STATE_RUNNING) return {};
  v1::WatchJobRequest request;
  request.set_job(deployment.job());
  request.set_omit_output(true);
  std::map<std::string, v1::JobRecord::Branch> latest;  // by relay
  const auto job = jobs.Read(request, [&](const v1::WatchJobResponse& response) {
    for (const v1::JobRecord& record : response.records()) {
      if (record.has_branch()) latest[record.branch().relay()] = record.branch();
    }
  });
  std::vector<std::string> why;
  if (!job.ok()) why.push_back(absl::StrCat("reasons unknown: ", job.status().message()));
  for (const auto& [relay, branch] : latest) {
    if (branch.lost()) why.push_back(BranchText(branch));
  }
  return why;
}

// Names the attached nodes that have no record, for a running deployment that names no nodes.
void NameSilentNodes(const OperatorContext& context, v1::Deployment* deployment) {
  const bool is_running = deployment->state() == v1::DEPLOYMENT_STATE_RUNNING;
  if (!is_running || WithoutRecord(*deployment) == 0 || !deployment->silent_nodes().empty()) return;
  const auto attached = ListAllAttached(context);
  if (!attached.ok()) return;
  std::set<std::string_view> heard;
  for (const v1::DeploymentNode& node : deployment->nodes()) heard.insert(node.node());
  for (const auto& [name, child] : *attached) {
    const bool is_silent = !child.is_relay() && !heard.contains(name);
    if (is_silent && deployment->silent_nodes_size() < kSilentNamed) {
      deployment->add_silent_nodes(name);
    }
  }
}

absl::StatusOr<int> Show(Console& console, const CommandLine& line,
                         const DeploymentArguments& arguments) {
  ASSIGN_OR_RETURN(const auto clients, OpenClients(line));
  ASSIGN_OR_RETURN(auto deployment, Find(*clients.deployments, arguments.deployment));
  NameSilentNodes(clients.context, &deployment);
  if (line.json) {
    console.out << Dump(ToJson(deployment));
  } else {
    console.out << DeploymentTable(deployment, WhyWaiting(*clients.jobs, deployment),
                                   console.width);
  }
  return kExitOk;
}

absl::StatusOr<int> Outputs(Console& console, const CommandLine& line,
                            const DeploymentArguments& arguments) {
  ASSIGN_OR_RETURN(const auto clients, OpenClients(line));
  ASSIGN_OR_RETURN(const auto deployment, Find(*clients.deployments, arguments.deployment));
  Json json = Json::object();
  Table table({{"NODE"}, {"OUTPUT"}, {"VALUE"}});
  for (const v1::DeploymentNode& node : deployment.nodes()) {
    if (!node.has_outputs()) continue;
    json[node.node()] = ToJson(node.outputs());
    for (const auto& output : node.outputs().outputs()) {
      table.AddRow(
          {node.node(), output.name(), output.value().empty() ? "(sensitive)" : output.value()});
    }
  }
  if (line.json) {
    console.out << Dump(json);
  } else if (table.empty()) {
    PrintMessage(console, HasEnded(deployment) ? "The deployment has no outputs."
                                               : "The deployment has no outputs yet.");
  } else {
    console.out << table.Render(console.width);
  }
  return kExitOk;
}

absl::StatusOr<int> Logs(Console& console, const CommandLine& line,
                         const DeploymentArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto clients, OpenClients(line));
  ASSIGN_OR_RETURN(auto deployment, Find(*clients.deployments, arguments.deployment));
  if (deployment.state() == v1::DEPLOYMENT_STATE_PENDING) {
    PrintMessage(console, "The deployment is pending: it has no output yet.");
    return kExitOk;
  }
  NameSilentNodes(clients.context, &deployment);
  return PrintLogs(console, line.json, clients.context, *clients.jobs, deployment.job(),
                   arguments.logs,
                   {deployment.silent_nodes().begin(), deployment.silent_nodes().end()},
                   {.noun = "deployment",
                    .command = absl::StrCat("muster deployment logs -f ", deployment.deployment()),
                    .list = absl::StrCat("muster deployment show ", deployment.deployment()),
                    .cancel = absl::StrCat("muster deployment cancel ", deployment.deployment())});
}

absl::StatusOr<int> Cancel(Console& console, const CommandLine& line,
                           const DeploymentArguments& arguments) {
  ASSIGN_OR_RETURN(const auto clients, OpenClients(line));
  ASSIGN_OR_RETURN(const auto id, clients.deployments->Resolve(arguments.deployment));
  ASSIGN_OR_RETURN(const auto before, clients.deployments->GetWithoutNodes(id));
  ASSIGN_OR_RETURN(const auto after, clients.deployments->Cancel(id));
  if (line.json) {
    ASSIGN_OR_RETURN(const auto shown, clients.deployments->Get(id));
    console.out << Dump(ToJson(shown));
  }
  const std::string subject = absl::StrCat("Deployment ", id);
  if (HasEnded(before)) {
    PrintMessage(console,
                 absl::StrCat(subject, " had already ended: ", StateWord(after.state()), "."));
  } else if (after.state() == v1::DEPLOYMENT_STATE_CANCELLED) {
    PrintMessage(console, absl::StrCat(subject, " is cancelled."));
  } else if (after.state() == v1::DEPLOYMENT_STATE_RUNNING) {
    PrintMessage(console, absl::StrCat(subject,
                                       " is being cancelled: its nodes still have to end. Its "
                                       "state: muster deployment show ",
                                       id));
  } else {
    PrintMessage(console,
                 absl::StrCat(subject,
                              " is cancelled as soon as the root relay answers. Its state: "
                              "muster deployment show ",
                              id));
  }
  return kExitOk;
}

CLI::App& AddOne(CommandLine& line, CLI::App& group, const CommandText& text,
                 const std::shared_ptr<DeploymentArguments>& arguments, Handler handler) {
  CLI::App& command = AddCommand(group, text);
  if (text.name != "list") {
    command
        .add_option("DEPLOYMENT", arguments->deployment,
                    "The id of the deployment, or a unique prefix of it")
        ->required()
        ->type_name("");
  }
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments, handler](Console& console) {
    return handler(console, line, *arguments);
  });
  return command;
}

}  // namespace

void AddDeploymentCommands(CommandLine& line) {
  CLI::App& group =
      AddCommand(line.app, {.name = "deployment",
                            .summary = "List, show, follow, cancel, retry and destroy deployments",
                            .example = "muster deployment list"});
  group.require_subcommand(1);
  const auto arguments = std::make_shared<DeploymentArguments>();
  CLI::App& list = AddOne(line, group,
                          {.name = "list",
                           .summary = "List the newest deployments",
                           .details = "NODES: on how many it succeeded, of all. TEMPLATE is the "
                                      "type if a type was deployed alone.",
                           .example = "muster deployment list"},
                          arguments, List);
  CLI::Option* limit = list.add_option("--limit", arguments->limit,
                                       "The maximum number of deployments (default: 20)");
  limit->type_name("N");
  AllowRange(*limit, 1, 1'000);
  AddOne(line, group,
         {.name = "show",
          .summary = "Show the parameters of a deployment, who set them, and its outcomes",
          .example = "muster deployment show 0123456789abcdef0123456789abcdef"},
         arguments, Show);
  AddOne(line, group,
         {.name = "outputs",
          .summary = "Print the outputs of a deployment on each node",
          .example = "muster deployment outputs 0123456789abcdef0123456789abcdef"},
         arguments, Outputs);
  CLI::App& logs =
      AddOne(line, group,
             {.name = "logs",
              .summary = "Print the output of a deployment, and the reasons for failures",
              .details = "The exit code is 9 if the deployment has ended and failed on a node, or "
                         "with --node on one of these nodes.",
              .example = "muster deployment logs -f 0123456789abcdef0123456789abcdef"},
             arguments, Logs);
  AddLogOptions(logs, "deployment", arguments->logs);
  AddOne(line, group,
         {.name = "cancel",
          .summary = "Cancel a deployment on all nodes",
          .details = "Nodes that have not started its container do not start it. Running "
                     "containers receive SIGTERM, and SIGKILL 5 s later. The jobs service stores "
                     "the cancellation, and repeats it until the root relay answers.",
          .example = "muster deployment cancel 0123456789abcdef0123456789abcdef"},
         arguments, Cancel);
  AddSuccessorCommands(line, group);
}

}  // namespace muster::cli
