#include "cli/commands/deployment_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/job_targets.h"
#include "cli/commands/without_answer.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/deployment_view.h"
#include "cli/output/format.h"
#include "cli/output/job_output.h"
#include "cli/rpc/job_client.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kDefaultDeadline = absl::Hours(1);
constexpr absl::Duration kDefaultTtl = absl::Seconds(10);
// A reachable node starts the container within this time.
constexpr absl::Duration kStartWithin = absl::Minutes(5);
constexpr absl::Duration kParallelWindow = absl::Hours(12);
// A deployment mostly leaves a state immediately, or after some seconds.
constexpr absl::Duration kFirstPoll = absl::Milliseconds(5);
constexpr absl::Duration kPoll = absl::Milliseconds(200);

absl::StatusOr<absl::Duration> TtlOf(const RolloutArguments& arguments) {
  return DurationOr(arguments.ttl, kDefaultTtl, "--ttl");
}

// Returns a command with an image and its times.
absl::StatusOr<v1::Command> TimedCommand(const std::string& image, absl::Duration time_limit,
                                         const RolloutArguments& arguments) {
  ASSIGN_OR_RETURN(const auto ttl, TtlOf(arguments));
  ASSIGN_OR_RETURN(const auto deadline, DurationOr(arguments.deadline, time_limit, "--deadline"));
  v1::Command command;
  command.mutable_container()->set_image(image);
  const absl::Time now = absl::Now();
  ToProto(now, command.mutable_not_before());
  ToProto(now + (arguments.parallel > 0 ? kParallelWindow : std::max(ttl, kStartWithin)),
          command.mutable_not_after());
  ToProto(deadline, command.mutable_time_limit());
  return command;
}

// Waits until `holds` for the deployment, and prints why it is pending if that has changed.
// CANCELLED after an interrupt.
absl::Status Await(Console& console, DeploymentClient& client, const std::string& id,
                   bool (*holds)(const v1::Deployment&)) {
  std::string printed;
  for (absl::Duration pause = kFirstPoll;; pause = std::min(2 * pause, kPoll)) {
    ASSIGN_OR_RETURN(const auto deployment, client.GetWithoutNodes(id));
    if (holds(deployment)) return absl::OkStatus();
    const std::string& problem = deployment.problem();
    if (deployment.state() == v1::DEPLOYMENT_STATE_PENDING && problem != printed) {
      printed = problem;
      if (!problem.empty()) {
        PrintMessage(console, absl::StrCat("The deployment is pending: ", Printable(problem)));
      }
    }
    if (!SleepUnlessInterrupted(pause)) return absl::CancelledError("interrupted");
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
                                      const RolloutArguments& arguments, bool json) {
  const std::string& id = created.deployment();
  if (!json) {
    RETURN_IF_ERROR(Await(console, client, id, [](const v1::Deployment& deployment) {
      return deployment.state() != v1::DEPLOYMENT_STATE_PENDING;
    }));
    RETURN_IF_ERROR(FollowOutput(console, context, created, nodes, arguments.parallel > 0));
  }
  return AwaitEnd(console, client, id);
}

// Checks that the plan has the secrets that were asked for: it comes from the jobs service.
absl::Status CheckSecrets(const v1::PlanDeploymentRequest& wanted,
                          const v1::Command::Deployment& planned) {
  const auto is_wanted = [&](const v1::Command::SecretReference& secret) {
    return std::ranges::any_of(wanted.secrets(), [&](const v1::Command::SecretReference& one) {
      return one.name() == secret.name() && one.secret() == secret.secret() &&
             (one.version() == 0 || one.version() == secret.version());
    });
  };
  if (planned.secrets_size() == wanted.secrets_size() &&
      std::ranges::all_of(planned.secrets(), is_wanted)) {
    return absl::OkStatus();
  }
  return FromService(errors::OtherSecretsReturned(), "the jobs service");
}

}  // namespace

void AddDeadlineOption(CLI::App& command, std::string_view deadline, RolloutArguments& arguments) {
  command
      .add_option("--deadline", arguments.deadline,
                  absl::StrCat("The time limit on each node, from the start (default: ",
                               ToAbsl(deadline), ")"))
      ->type_name("DURATION");
}

void AddWaitOption(CLI::App& command, std::string_view what, RolloutArguments& arguments) {
  command.add_flag(
      "--wait", arguments.wait,
      absl::StrCat("Print the output, and wait until the ", ToAbsl(what), " has ended"));
}

void AddRolloutOptions(CLI::App& command, std::string_view deadline, RolloutArguments& arguments) {
  AddDeadlineOption(command, deadline, arguments);
  AddPaceOptions(command, "deployment", arguments.ttl, arguments.parallel);
  command.add_flag("--skip-conformance", arguments.skip_conformance,
                   "Deploy also on nodes that the baseline of conformance does not admit");
  AddWaitOption(command, "deployment", arguments);
}

absl::StatusOr<v1::Command> MakeCommand(const std::string& image, v1::Command::Deployment content,
                                        absl::Duration time_limit,
                                        const RolloutArguments& arguments) {
  ASSIGN_OR_RETURN(v1::Command command, TimedCommand(image, time_limit, arguments));
  command.set_action(std::string(kDeploymentAction));
  v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
  deployment = std::move(content);
  deployment.set_deployment(NewCommandId());
  return command;
}

absl::StatusOr<v1::Command> MakeBuildCommand(const std::string& base, v1::Command::Build content,
                                             absl::Duration time_limit,
                                             const RolloutArguments& arguments) {
  ASSIGN_OR_RETURN(v1::Command command, TimedCommand(base, time_limit, arguments));
  command.set_action(std::string(kBuildAction));
  v1::Command::Build& build = *command.mutable_container()->mutable_build();
  build = std::move(content);
  build.set_build(NewCommandId());
  return command;
}

absl::StatusOr<v1::CreateDeploymentRequest> SignedRequest(const CommandSigner& signer,
                                                          v1::Command command,
                                                          std::vector<std::string> nodes,
                                                          const RolloutArguments& arguments) {
  ASSIGN_OR_RETURN(const auto ttl, TtlOf(arguments));
  ASSIGN_OR_RETURN(auto signed_command, signer.Sign(std::move(command), std::move(nodes)));
  v1::CreateDeploymentRequest request;
  *request.mutable_command() = std::move(signed_command.command);
  request.mutable_nodes()->Assign(signed_command.nodes.begin(), signed_command.nodes.end());
  request.set_parallel(arguments.parallel);
  ToProto(ttl, request.mutable_wait());
  request.set_skip_conformance(arguments.skip_conformance);
  return request;
}

absl::StatusOr<v1::CreateDeploymentRequest> PlannedRequest(const OperatorContext& context,
                                                           DeploymentClient& client,
                                                           const v1::PlanDeploymentRequest& wanted,
                                                           PlaceFiles place_files,
                                                           const TargetArguments& targets,
                                                           const RolloutArguments& arguments) {
  ASSIGN_OR_RETURN(auto plan, client.Plan(wanted));
  RETURN_IF_ERROR(CheckSecrets(wanted, plan.deployment()));
  if (plan.deployment().workspace().workspace() != wanted.workspace()) {
    return FromService(errors::OtherWorkspaceReturned(), "the jobs service");
  }
  RETURN_IF_ERROR(place_files(plan.mutable_deployment()));
  const absl::Duration time_limit =
      plan.has_time_limit() ? FromProto(plan.time_limit()) : kDefaultDeadline;
  ASSIGN_OR_RETURN(auto command,
                   MakeCommand(plan.image(), plan.deployment(), time_limit, arguments));
  command.mutable_targets()->set_all(targets.all);
  ASSIGN_OR_RETURN(auto nodes, NamedNodes(context, targets));
  if (!wanted.workspace().empty() && nodes.size() != 1) {
    return UsageError(
        absl::StrCat("--workspace is for one node, and the command names ", nodes.size()),
        "Name one node: --node NODE.");
  }
  ASSIGN_OR_RETURN(const auto signer, CommandSigner::Create(context));
  return SignedRequest(signer, std::move(command), std::move(nodes), arguments);
}

absl::StatusOr<v1::Deployment> AwaitEnd(Console& console, DeploymentClient& client,
                                        const std::string& deployment) {
  RETURN_IF_ERROR(Await(console, client, deployment, HasEnded));
  return client.Get(deployment);
}

absl::StatusOr<v1::Deployment> CreateDeployment(Console& console, DeploymentClient& client,
                                                const v1::CreateDeploymentRequest& request) {
  auto stored = client.Create(request);
  if (stored.ok() || !Interrupted()) return stored;
  PrintMessage(console,
               "\nInterrupted: it is not known whether it was stored. Look: muster deployment "
               "list");
  return absl::CancelledError("interrupted");
}

void ReportCreated(Console& console, const v1::Deployment& created) {
  PrintMessage(console,
               absl::StrCat(created.has_build() ? "Build " : "Deployment ", created.deployment(),
                            " of ", SubjectOf(created), " is created."));
}

void ReportInterrupted(Console& console, const std::string& deployment, std::string_view noun) {
  PrintMessage(console,
               absl::StrCat("\nThe ", ToAbsl(noun), " continues. Show it: muster deployment show ",
                            deployment, "\nCancel it: muster deployment cancel ", deployment));
}

int ReportNotCreated(Console& console, bool has_files) {
  PrintMessage(console,
               absl::StrCat("\nInterrupted: nothing was deployed or built.",
                            has_files ? " Run the same command again: it continues the upload of "
                                        "files."
                                      : ""));
  return kExitInterrupted;
}

absl::StatusOr<int> CreateAndReport(Console& console, const CommandLine& line,
                                    const OperatorContext& context, DeploymentClient& client,
                                    const v1::CreateDeploymentRequest& request,
                                    const RolloutArguments& arguments) {
  const auto stored = CreateDeployment(console, client, request);
  if (absl::IsCancelled(stored.status()) && Interrupted()) return kExitInterrupted;
  RETURN_IF_ERROR(stored.status());
  const v1::Deployment& created = *stored;
  if (!arguments.wait) {
    console.out << (line.json ? Dump(ToJson(created)) : absl::StrCat(created.deployment(), "\n"));
    return kExitOk;
  }
  ReportCreated(console, created);
  const std::vector<std::string> nodes(request.nodes().begin(), request.nodes().end());
  const auto ended = Follow(console, context, client, created, nodes, arguments, line.json);
  if (Interrupted()) {
    ReportInterrupted(console, created.deployment(), created.has_build() ? "build" : "deployment");
    return kExitInterrupted;
  }
  RETURN_IF_ERROR(ended.status());
  console.out << (line.json ? Dump(ToJson(*ended)) : DeploymentTable(*ended, {}, console.width));
  return ended->state() == v1::DEPLOYMENT_STATE_SUCCEEDED ? kExitOk : kExitJobFailed;
}

}  // namespace muster::cli
