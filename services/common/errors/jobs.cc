// Generated from jobs.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/jobs.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status JobNotFound(std::string_view job) {
  return MakeError(absl::StatusCode::kNotFound, "JOB_NOT_FOUND",
                   absl::StrCat("job \"", ToAbsl(job), "\" not found"),
                   "List the jobs: muster job list.");
}

absl::Status JobExists(std::string_view job) {
  return MakeError(absl::StatusCode::kAlreadyExists, "JOB_EXISTS",
                   absl::StrCat("job ", ToAbsl(job), " exists with another command or other targets"),
                   "Use a new id for a new command.");
}

absl::Status JobInCreation(std::string_view job) {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "JOB_IN_CREATION",
                   absl::StrCat("job ", ToAbsl(job), " is being created by an earlier call"),
                   "Repeat the call; it returns the job once it exists."),
                        absl::Seconds(1));
}

absl::Status TooManyJobs(int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_JOBS",
                   absl::StrCat("the limit of running jobs, ", limit, ", is reached"),
                   "Wait until some have ended, cancel them (muster job list), or raise jobs.max_running in the configuration of the root relay."),
                        absl::Seconds(10));
}

absl::Status TooManyJobsOfSubmitter(std::string_view submitter, int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_JOBS",
                   absl::StrCat("the limit of running jobs of ", ToAbsl(submitter), ", ", limit, " (half of jobs.max_running), is reached"),
                   "Wait until some have ended, cancel them (muster job list), or raise jobs.max_running in the configuration of the root relay."),
                        absl::Seconds(10));
}

absl::Status InvalidJobCommand(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_COMMAND",
                   absl::StrCat("invalid command: ", ToAbsl(why)),
                   "Send a command as jobs.proto describes it, or use muster exec.");
}

absl::Status NoNodeAttached() {
  return MakeError(absl::StatusCode::kNotFound, "NODE_NOT_FOUND",
                   "no node is attached, or was within the last week",
                   "List the nodes with `muster nodes`, and start their agents: muster agent attach.");
}

absl::Status CommandRefused(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "COMMAND_REFUSED",
                   absl::StrCat("the command is not accepted: ", ToAbsl(why)),
                   "Sign it yourself, with a valid certificate of IssueCommandCertificate.");
}

absl::Status NotADeployment(std::string_view job) {
  return MakeError(absl::StatusCode::kPermissionDenied, "NOT_A_DEPLOYMENT",
                   absl::StrCat("job ", ToAbsl(job), " is not the job of a deployment: the jobs service may not cancel it"),
                   absl::StrCat("Cancel it as an operator: muster job cancel ", ToAbsl(job), "."));
}

absl::Status InvalidCancellation(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CANCELLATION",
                   absl::StrCat("invalid cancellation: ", ToAbsl(why)),
                   "Send only the id of the job, or use muster job cancel.");
}

absl::Status CommandOfOtherJob() {
  return MakeError(absl::StatusCode::kPermissionDenied, "COMMAND_REFUSED",
                   "the command was signed for another job",
                   "Send it with the job id that was signed.");
}

absl::Status InvalidPosition(int64_t position) {
  return MakeError(absl::StatusCode::kOutOfRange, "INVALID_POSITION",
                   absl::StrCat("no record of the job begins at ", position),
                   "Use 0 for the first record, or a position from the output: muster job logs --json, or the method WatchJob.");
}

absl::Status NotTheRoot(std::string_view relay) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_THE_ROOT",
                   absl::StrCat("relay \"", ToAbsl(relay), "\" is not the root relay"),
                   "Call the root relay: relay_targets in the context of the operator.");
}

absl::Status NoCommandAuthority() {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "NO_COMMAND_AUTHORITY",
                   "this service has not received the command authority from the aggregator yet",
                   "Try again in a moment."),
                        absl::Seconds(1));
}

absl::Status JobDamaged(std::string_view path) {
  return MakeError(absl::StatusCode::kDataLoss, "JOB_DAMAGED",
                   absl::StrCat(ToAbsl(path), " is damaged"),
                   "Move its folder away when it is no longer needed; the job is not loaded.");
}

absl::Status JobOfNodeDamaged(std::string_view path) {
  return MakeError(absl::StatusCode::kDataLoss, "JOB_DAMAGED",
                   absl::StrCat(ToAbsl(path), " is damaged"),
                   "Remove its folder when it is no longer needed; the job is not run again.");
}

absl::Status JobUnfinished(std::string_view path) {
  return MakeError(absl::StatusCode::kNotFound, "JOB_UNFINISHED",
                   absl::StrCat("the creation of job ", ToAbsl(path), " was interrupted"),
                   "");
}

absl::Status TargetRefused(std::string_view node, std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "TARGET_REFUSED",
                   absl::StrCat("the command is not for node ", ToAbsl(node), ": ", ToAbsl(why)),
                   "Sign it for this node.");
}

absl::Status RevocationsDamaged(std::string_view node) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "REVOCATIONS_DAMAGED",
                   absl::StrCat("the list of revoked signers on node ", ToAbsl(node), " is damaged, and its relay has not sent it again"),
                   "Sign the command again when the relay of the node is connected to the aggregator.");
}

absl::Status SignerOfCommandRevoked(std::string_view signer) {
  return MakeError(absl::StatusCode::kPermissionDenied, "OPERATOR_REVOKED",
                   absl::StrCat("the signer of the command, ", ToAbsl(signer), ", was revoked"),
                   "Sign it again as another operator of the fleet.");
}

absl::Status PolicyUnusable(std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "POLICY_UNUSABLE",
                   why,
                   "Correct the file, which docs/agent.md describes, or its mode: chmod go-w FILE. Until then nothing runs.");
}

absl::Status InvalidPolicy(std::string_view mistakes) {
  return MakeError(absl::StatusCode::kInvalidArgument, "POLICY_UNUSABLE",
                   mistakes,
                   "Correct the file; docs/agent.md describes it. Until then nothing runs.");
}

absl::Status PolicyRefused(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "POLICY_REFUSED",
                   why,
                   "Add a rule that admits the command to the policy file on the node: docs/agent.md shows one. If the message names a rule, add the variable or the class to `environment` or `classes` of that rule.");
}

absl::Status ContainerNotAdmitted(std::string_view why, std::string_view place, std::string_view line) {
  return MakeError(absl::StatusCode::kPermissionDenied, "POLICY_REFUSED",
                   absl::StrCat(ToAbsl(why), "; ", ToAbsl(place), ": ", ToAbsl(line)),
                   "Correct the policy file on the node if the node is to run this image: the message names the lines, each of which replaces the line of its field. docs/agent.md describes it.");
}

absl::Status PluginNotAdmitted(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "POLICY_REFUSED",
                   why,
                   "Add a rule to that file that admits the command of the plugin, with `actions: [collect]`.");
}

absl::Status ModuleNotAdmitted(std::string_view file, std::string_view module) {
  return MakeError(absl::StatusCode::kPermissionDenied, "POLICY_REFUSED",
                   absl::StrCat("`collect` in ", ToAbsl(file), " does not name module ", ToAbsl(module)),
                   "Add the module to `collect` in that file.");
}

absl::Status PolicyNamesUser(std::string_view user) {
  return MakeError(absl::StatusCode::kPermissionDenied, "POLICY_REFUSED",
                   absl::StrCat("the rule for this plugin's command names user ", ToAbsl(user), "; plugins run as the user of the agent"),
                   "Write a rule for collect without user.");
}

absl::Status UserNotPossible(std::string_view user) {
  return MakeError(absl::StatusCode::kPermissionDenied, "USER_NOT_POSSIBLE",
                   absl::StrCat("cannot run a command as ", ToAbsl(user), ": the agent does not run as root"),
                   "Run the agent as root, or leave user out of the rule.");
}

absl::Status JobFolderDamaged(std::string_view folder) {
  return MakeError(absl::StatusCode::kInvalidArgument, "JOB_FOLDER_DAMAGED",
                   absl::StrCat(ToAbsl(folder), " contains no complete command"),
                   "Ignore the folder; a command that was not stored did not run.");
}

absl::Status ProcessMarkDamaged() {
  return MakeError(absl::StatusCode::kDataLoss, "JOB_DAMAGED",
                   "the process file of a job is damaged",
                   "Check the disk of this node.");
}

absl::Status ContainerMarkDamaged() {
  return MakeError(absl::StatusCode::kDataLoss, "JOB_DAMAGED",
                   "the description of the container of a job is damaged",
                   "Check the disk of this node.");
}

absl::Status JobRecordsDamaged(std::string_view job) {
  return MakeError(absl::StatusCode::kDataLoss, "JOURNAL_DAMAGED",
                   absl::StrCat("the records of job ", ToAbsl(job), " cannot be read from the disk"),
                   "Check the disk of this node.");
}

absl::Status InvalidJobRecord(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_JOB_RECORD",
                   absl::StrCat("invalid record of a job: ", ToAbsl(why)),
                   "Update the sender, or find the other program that sends with its identity.");
}

absl::Status FinalNotSigned(std::string_view why) {
  return MakeError(absl::StatusCode::kUnauthenticated, "SIGNATURE_INVALID",
                   absl::StrCat("the final record of a job is not signed by its node: ", ToAbsl(why)),
                   "Compare the clocks of node and root relay. If they agree, find the relay on the route that changes records.");
}

absl::Status AgentDied() {
  return MakeError(absl::StatusCode::kDataLoss, "AGENT_DIED",
                   "the agent or the machine failed while it ran",
                   "Read the log of the agent and of the machine for the cause. The effects of the command are unknown: check them before you submit it again.");
}

std::string_view OutcomeNextStep(std::string_view reason) {
  if (reason == "AGENT_DIED") {
    return "Read the log of the agent and of the machine for the cause. The effects of the command are unknown: check them before you submit it again.";
  }
  if (reason == "AGENT_STOPPED") {
    return "Start the agent. Check on the node what the command has done before you submit it again.";
  }
  if (reason == "BASE_IMAGE_HAS_TRIGGERS") {
    return "Use a type whose image has no ONBUILD instructions.";
  }
  if (reason == "BUILD_FAILED") {
    return "Look for an error in the log of Docker on the node.";
  }
  if (reason == "COMMAND_NOT_STARTED") {
    return "Check that the program exists on the node, and that the user of the policy's rule may run it.";
  }
  if (reason == "CONTAINER_EXISTS") {
    return "Wait until the agent has collected it, or remove it.";
  }
  if (reason == "CONTAINER_NOT_FOUND") {
    return "Find out who removed it.";
  }
  if (reason == "CONTAINER_NOT_STARTED") {
    return "Check the command and the image.";
  }
  if (reason == "CONTAINER_OUTPUT_LOST") {
    return "Look for an error in the log of Docker on the node.";
  }
  if (reason == "CONTAINER_STATE_LOST") {
    return "Check on the node what the command has done, and whether a process of it still runs.";
  }
  if (reason == "CONTENT_DAMAGED") {
    return "Check the relays of the node and the disk of the jobs service, and try the deployment again.";
  }
  if (reason == "CONTENT_UNREACHABLE") {
    return "Check the relays of the node and the jobs service, and try the deployment again.";
  }
  if (reason == "DOCKER_ANSWER_INVALID") {
    return "Look for an error in the log of Docker on the node.";
  }
  if (reason == "DOCKER_FAILED") {
    return "Look for an error in the log of Docker on the node.";
  }
  if (reason == "DOCKER_TOO_OLD") {
    return "Install a newer Docker on the node.";
  }
  if (reason == "DOCKER_UNREACHABLE") {
    return "Start Docker on the node, and let the user of the agent open its socket.";
  }
  if (reason == "FILES_TOO_LARGE") {
    return "Raise max_files in the rule for containers in the policy of the node (policy.yaml), or deploy smaller files.";
  }
  if (reason == "IMAGE_DIGEST_DIFFERS") {
    return "Find out why the registry changes images. Nothing was stored.";
  }
  if (reason == "IMAGE_NOT_FOUND") {
    return "Pull the image, or load it from an archive.";
  }
  if (reason == "IMAGE_PULL_FAILED") {
    return "Check the name of the image, the registry, and the node's access to it.";
  }
  if (reason == "IMAGE_PUSH_FAILED") {
    return "Check the name of the repository, the registry, and the registry credentials of the node.";
  }
  if (reason == "INVALID_BUILD") {
    return "See \"Images from sources\" in docs/templates.md.";
  }
  if (reason == "INVALID_DOCUMENT") {
    return "Correct the document, and send it again.";
  }
  if (reason == "INVALID_PARAMETERS") {
    return "Correct them. `muster type show` and `muster template show` print the parameters.";
  }
  if (reason == "INVALID_SECRETS") {
    return "Correct the secrets: `muster deploy --secret NAME=SECRET`, with the names in the document of the type or template.";
  }
  if (reason == "INVALID_WORKSPACE") {
    return "Name one workspace and one node: muster deploy TEMPLATE --node NODE --workspace NAME.";
  }
  if (reason == "JOB_OUTCOME_EXITED") {
    return "Read the output of the command on the node: muster job logs JOB --node NAME, or muster deployment logs DEPLOYMENT --node NAME.";
  }
  if (reason == "JOB_OUTCOME_EXPIRED") {
    return "Submit it again. If nodes waited for their turn, use a larger --parallel. Otherwise compare the clock of the node with yours.";
  }
  if (reason == "JOB_OUTCOME_FAILED") {
    return "Look up the reason in docs/errors.md.";
  }
  if (reason == "JOB_OUTCOME_INDETERMINATE") {
    return "Check on the node whether it ran before you submit it again. When the node is reachable again, it cancels the command.";
  }
  if (reason == "JOB_OUTCOME_LOST") {
    return "Check on the node what the command has done before you submit it again.";
  }
  if (reason == "JOB_OUTCOME_REFUSED") {
    return "Look up the reason in docs/errors.md.";
  }
  if (reason == "JOB_OUTCOME_TIMED_OUT") {
    return "Check on the node what the command has done, and whether the node is attached: muster node show NAME.";
  }
  if (reason == "JOB_OUTCOME_UNKNOWN") {
    return "Choose a name of the kind `node` in `muster nodes`. On a new machine run muster node join, then muster agent attach; on one that has joined start its agent.";
  }
  if (reason == "JOB_OUTCOME_UNREACHABLE") {
    return "Start the agent of the node, or let the command wait longer: --ttl. `muster node show NAME` prints since when it is not attached.";
  }
  if (reason == "MACHINE_RESTARTED") {
    return "Check on the node what the command has done before you submit it again.";
  }
  if (reason == "OPERATOR_REVOKED") {
    return "Sign it again as another operator of the fleet.";
  }
  if (reason == "OUTPUTS_INVALID") {
    return "Correct the program in the image, which writes each output to a file in /state/outputs, or the outputs in the document: muster type show, muster template show.";
  }
  if (reason == "OUT_OF_MEMORY") {
    return "Raise the limits of which the smaller applies: memory in the rule of the node's policy, and limits.memory of the type or the template of a deployment.";
  }
  if (reason == "POLICY_REFUSED") {
    return "Add a rule that admits the command to the policy file on the node: docs/agent.md shows one. If the message names a rule, add the variable or the class to `environment` or `classes` of that rule.";
  }
  if (reason == "POLICY_UNUSABLE") {
    return "Correct the file, which docs/agent.md describes, or its mode: chmod go-w FILE. Until then nothing runs.";
  }
  if (reason == "RECORDS_DAMAGED") {
    return "Check the disk of the node, and what the command has done.";
  }
  if (reason == "RECORD_REFUSED") {
    return "Check on the node what the command has done. Then find the relay on the route, or the agent, that sends such records: it is damaged, outdated or in other hands.";
  }
  if (reason == "REGISTRY_CREDENTIALS_UNUSABLE") {
    return "See \"Registry credentials\" in docs/agent.md.";
  }
  if (reason == "REVOCATIONS_DAMAGED") {
    return "Sign the command again when the relay of the node is connected to the aggregator.";
  }
  if (reason == "SECRET_UNAVAILABLE") {
    return "Remove the cause, and try the deployment again: muster deployment retry.";
  }
  if (reason == "STATE_TOO_LARGE") {
    return "Let the program in the image write less to /state, or to /tmp. docs/agent.md lists the limits.";
  }
  if (reason == "TIME_LIMIT") {
    return "If the container or the build did not start, check Docker on the node: docker info. Otherwise raise the limits of which the smallest applies: --deadline, time_limit in the rule of the node's policy, and for a deployment limits.time of its type and its template.";
  }
  if (reason == "TYPE_NOT_BUILDABLE") {
    return "Store a version of the type that has `build` with a folder for the files (docs/templates.md).";
  }
  if (reason == "USER_NOT_POSSIBLE") {
    return "Run the agent as root, or leave user out of the rule.";
  }
  if (reason == "WORKSPACE_NOT_SAVED") {
    return "Remove the cause. The folder stays on the node for a day: docs/agent.md. Then decide by muster workspace unlock.";
  }
  if (reason == "WORKSPACE_TOO_LARGE") {
    return "Remove files from /state/workspace that can be made again, such as caches. The folder stays on the node for a day: docs/agent.md.";
  }
  if (reason == "WORKSPACE_UNAVAILABLE") {
    return "Remove the cause, and try the deployment again: muster deployment retry.";
  }
  return "";
}

}  // namespace muster::errors
