// Creates deployments, and waits for them.
#ifndef MUSTER_CLI_COMMANDS_DEPLOYMENT_RUN_H_
#define MUSTER_CLI_COMMANDS_DEPLOYMENT_RUN_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/commands/command.h"
#include "cli/commands/job_targets.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/sign_command.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

struct RolloutArguments {
  std::string deadline;
  std::string ttl;
  int parallel = 0;
  bool skip_conformance = false;
  bool wait = false;
};

// Adds --deadline, --ttl, --parallel, --skip-conformance and --wait. `deadline`: the default of
// --deadline, for its help.
void AddRolloutOptions(CLI::App& command, std::string_view deadline, RolloutArguments& arguments);

// Add --deadline and --wait alone. `what` waits: "deployment" or "build".
void AddDeadlineOption(CLI::App& command, std::string_view deadline, RolloutArguments& arguments);
void AddWaitOption(CLI::App& command, std::string_view what, RolloutArguments& arguments);

// Returns the command of a new deployment without targets, with a new id. `time_limit` applies
// unless --deadline is given. A usage error if an argument is invalid.
absl::StatusOr<v1::Command> MakeCommand(const std::string& image, v1::Command::Deployment content,
                                        absl::Duration time_limit,
                                        const RolloutArguments& arguments);

// Returns the command of a new build in the same way.
absl::StatusOr<v1::Command> MakeBuildCommand(const std::string& base, v1::Command::Build content,
                                             absl::Duration time_limit,
                                             const RolloutArguments& arguments);

// Returns the request with the signed command; for all nodes if the command has `all`.
absl::StatusOr<v1::CreateDeploymentRequest> SignedRequest(const CommandSigner& signer,
                                                          v1::Command command,
                                                          std::vector<std::string> nodes,
                                                          const RolloutArguments& arguments);

// Places the files of a deployment: in its content, which is signed afterwards, or elsewhere.
using PlaceFiles = absl::FunctionRef<absl::Status(v1::Command::Deployment* content)>;

// Returns the signed request for what `wanted` resolves to, on these nodes.
absl::StatusOr<v1::CreateDeploymentRequest> PlannedRequest(const OperatorContext& context,
                                                           DeploymentClient& client,
                                                           const v1::PlanDeploymentRequest& wanted,
                                                           PlaceFiles place_files,
                                                           const TargetArguments& targets,
                                                           const RolloutArguments& arguments);

// Waits until the deployment has ended, and returns it with its nodes. Prints why it is pending.
// CANCELLED after an interrupt: the deployment continues.
absl::StatusOr<v1::Deployment> AwaitEnd(Console& console, DeploymentClient& client,
                                        const std::string& deployment);

// Prints how to continue with a deployment after an interrupt. `noun`: "build", or "deployment".
void ReportInterrupted(Console& console, const std::string& deployment,
                       std::string_view noun = "deployment");

// Prints that an interrupt came before the deployment or build was sent, and how to continue.
// `has_files`: some may be uploaded. Returns the exit code.
int ReportNotCreated(Console& console, bool has_files);

// Creates the deployment, and prints its id. With --wait it prints the output and the outcome
// instead. Returns the exit code.
absl::StatusOr<int> CreateAndReport(Console& console, const CommandLine& line,
                                    const OperatorContext& context, DeploymentClient& client,
                                    const v1::CreateDeploymentRequest& request,
                                    const RolloutArguments& arguments);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_DEPLOYMENT_RUN_H_
