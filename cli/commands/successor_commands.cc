#include "cli/commands/successor_commands.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/commands/deployment_run.h"
#include "cli/commands/job_targets.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/deployment_view.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "cli/rpc/sign_command.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/deployment_content.h"
#include "services/common/templates/resolved_deployment.h"

namespace muster::cli {
namespace {

enum class Kind { kRetry, kDestroy };

struct SuccessorArguments {
  std::string deployment;
  TargetArguments targets;
  bool force = false;
  RolloutArguments run;
};

// The new deployment, before it is signed.
struct Successor {
  v1::Command::Deployment content;
  v1::Deployment description;  // without an id
  std::string signed_by;       // URI of the operator who signed the content before
};

// Reads the content from the command that an operator signed, and not from what the jobs service
// says about it.
absl::StatusOr<Successor> ReadSuccessor(const CommandSigner& signer, const v1::DeploymentPlan& plan,
                                        const std::string& source, Kind kind) {
  const auto verified = signer.VerifyStored(plan.source());
  if (!verified.ok()) {
    return FromService(verified.status(), absl::StrCat("the command of deployment ", source));
  }
  Successor successor;
  successor.content = verified->command.container().deployment();
  if (successor.content.deployment() != source) {
    return FromService(errors::OtherCommandReturned(source), "the jobs service");
  }
  // The newest version is known to the jobs service alone.
  if (successor.content.has_workspace()) {
    if (plan.workspace().workspace() != successor.content.workspace().workspace()) {
      return FromService(errors::OtherWorkspaceReturned(), "the jobs service");
    }
    *successor.content.mutable_workspace() = plan.workspace();
  }
  v1::Deployment& description = successor.description;
  if (kind == Kind::kRetry) {
    description.set_retry_of(source);
  } else {
    description.set_destroys(source);
    successor.content.set_action(std::string(kDestroyAction));
  }
  ASSIGN_OR_RETURN(successor.signed_by, ToUri(verified->signer));
  ASSIGN_OR_RETURN(const auto resolved, ResolveDeployment(successor.content));
  DescribeContent(successor.content, resolved, &description);
  return successor;
}

absl::StatusOr<v1::PlanDeploymentRequest> Wanted(const OperatorContext& context,
                                                 const std::string& source, Kind kind,
                                                 const SuccessorArguments& arguments) {
  ASSIGN_OR_RETURN(const auto nodes, NamedNodes(context, arguments.targets));
  v1::PlanDeploymentRequest wanted;
  (kind == Kind::kRetry ? wanted.mutable_retry_of() : wanted.mutable_destroys())->assign(source);
  wanted.mutable_nodes()->Assign(nodes.begin(), nodes.end());
  wanted.set_force(arguments.force);
  return wanted;
}

absl::StatusOr<int> Run(Console& console, const CommandLine& line, Kind kind,
                        const SuccessorArguments& arguments) {
  RETURN_IF_ERROR(CheckOptionalTargets(arguments.targets, line.command));
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const auto client, DeploymentClient::Open(context));
  ASSIGN_OR_RETURN(const auto source, client->Resolve(arguments.deployment));
  ASSIGN_OR_RETURN(const auto wanted, Wanted(context, source, kind, arguments));
  ASSIGN_OR_RETURN(const auto plan, client->Plan(wanted));
  ASSIGN_OR_RETURN(const auto signer, CommandSigner::Create(context));
  ASSIGN_OR_RETURN(auto successor, ReadSuccessor(signer, plan, source, kind));
  const std::string table =
      SuccessorTable(successor.description, successor.signed_by, plan, console.width);
  PrintMessage(console, ToStd(absl::StripSuffix(table, "\n")));
  ASSIGN_OR_RETURN(auto command,
                   MakeCommand(successor.description.image(), std::move(successor.content),
                               FromProto(plan.time_limit()), arguments.run));
  ASSIGN_OR_RETURN(auto request,
                   SignedRequest(signer, std::move(command),
                                 {plan.nodes().begin(), plan.nodes().end()}, arguments.run));
  request.set_retry_of(successor.description.retry_of());
  request.set_destroys(successor.description.destroys());
  request.set_force(arguments.force);
  return CreateAndReport(console, line, context, *client, request, arguments.run);
}

void AddOne(CommandLine& line, CLI::App& group, const CommandText& text, const std::string& force,
            Kind kind) {
  CLI::App& command = AddCommand(group, text);
  const auto arguments = std::make_shared<SuccessorArguments>();
  command
      .add_option("DEPLOYMENT", arguments->deployment,
                  "The id of the deployment, or a unique prefix of it")
      ->required()
      ->type_name("");
  AddNodeOptions(command, "Only on these nodes, separated by commas", arguments->targets);
  command.add_flag("--force", arguments->force, force);
  AddRolloutOptions(command, "that of the deployment", arguments->run);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments, kind](Console& console) {
    return Run(console, line, kind, *arguments);
  });
}

}  // namespace

void AddSuccessorCommands(CommandLine& line, CLI::App& group) {
  AddOne(
      line, group,
      {.name = "retry",
       .summary = "Try a deployment again where it failed",
       .details =
           "Creates a deployment with the same documents, parameters, files and action, on the "
           "nodes on which the ended one did not start, failed, timed out, was cancelled or was "
           "lost. Leaves out nodes on which it succeeded, and nodes on which it is not known "
           "whether it ran, unless the type declares the action idempotent.\n"
           "Prints the content, which an operator has signed before, and signs it with your "
           "identity. Then prints the id of the new deployment, as muster deploy does; with --wait "
           "the exit "
           "code is 9 unless it succeeded on every node.",
       .example = "muster deployment retry 0123456789abcdef0123456789abcdef --wait"},
      "Also on nodes on which it is not known whether it ran: it may run there a second time, or "
      "while the first one still runs",
      Kind::kRetry);
  AddOne(
      line, group,
      {.name = "destroy",
       .summary = "Run the action destroy of a deployment",
       .details =
           "Creates a deployment with the action destroy, and with the documents, parameters and "
           "files of the ended one, on the nodes on which that one may have started. The type "
           "must have the action. A destruction that failed is repeated with the same command.\n"
           "Prints the content, which an operator has signed before, and signs it with your "
           "identity. Then prints the id of the new deployment, as muster deploy does; with --wait "
           "the exit "
           "code is 9 unless it succeeded on every node.",
       .example = "muster deployment destroy 0123456789abcdef0123456789abcdef --wait"},
      "Also on nodes on which it is not known whether an earlier destruction ran: it may run "
      "there a second time, or while the first one still runs",
      Kind::kDestroy);
}

}  // namespace muster::cli
