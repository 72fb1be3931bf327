// Generated from templates.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/templates.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status InvalidSchema(std::string_view place, std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_SCHEMA",
                   absl::StrCat("invalid JSON Schema at ", ToAbsl(place), ": ", ToAbsl(problem)),
                   "Correct the schema. It is JSON Schema draft-07, whose references stay in the document.");
}

absl::Status InvalidDocument(std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DOCUMENT",
                   absl::StrCat("invalid document: ", ToAbsl(problem)),
                   "Correct the document, and send it again.");
}

absl::Status WrongKind(std::string_view kind, std::string_view wanted, std::string_view command) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DOCUMENT",
                   absl::StrCat("invalid document: its kind is ", ToAbsl(kind), ", not ", ToAbsl(wanted)),
                   absl::StrCat("Correct the kind, or store it with ", ToAbsl(command), "."));
}

absl::Status DeploymentImageDiffers(std::string_view image, std::string_view of_type) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DOCUMENT",
                   absl::StrCat("invalid deployment: its command names the image ", ToAbsl(image), ", and its documents ", ToAbsl(of_type)),
                   "Sign a command with the image of the documents, or use muster deploy.");
}

absl::Status DocumentTooLarge(int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DOCUMENT",
                   absl::StrCat("invalid document: it is larger than ", limit, " KiB as JSON"),
                   "Move long values into the image.");
}

absl::Status InvalidReference(std::string_view what, std::string_view reference) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_REFERENCE",
                   absl::StrCat("\"", ToAbsl(reference), "\" names no ", ToAbsl(what), ": it is not NAME or NAME@VERSION"),
                   "Write a name, or a name and a version, such as ansible@1.2.0 or ansible@1.2.");
}

absl::Status TypeNotFound(std::string_view reference) {
  return MakeError(absl::StatusCode::kNotFound, "TYPE_NOT_FOUND",
                   absl::StrCat("template type \"", ToAbsl(reference), "\" not found"),
                   "List the types: muster type list. Store one: muster type push FILE.");
}

absl::Status TemplateNotFound(std::string_view reference) {
  return MakeError(absl::StatusCode::kNotFound, "TEMPLATE_NOT_FOUND",
                   absl::StrCat("template \"", ToAbsl(reference), "\" not found"),
                   "List the templates: muster template list. Store one: muster template create -f FILE.");
}

absl::Status VersionExists(std::string_view what, std::string_view version) {
  return MakeError(absl::StatusCode::kAlreadyExists, "VERSION_EXISTS",
                   absl::StrCat(ToAbsl(what), " ", ToAbsl(version), " exists with other content"),
                   "A version never changes. Give the document a new version.");
}

absl::Status TooManyVersions(std::string_view what, int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_VERSIONS",
                   absl::StrCat("the limit of versions of ", ToAbsl(what), ", ", limit, ", is reached"),
                   "Use the stored versions.");
}

absl::Status InvalidParameters(std::string_view problems) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PARAMETERS",
                   absl::StrCat("invalid parameters: ", ToAbsl(problems)),
                   "Correct them. `muster type show` and `muster template show` print the parameters.");
}

absl::Status InvalidAction(std::string_view action, std::string_view actions) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PARAMETERS",
                   absl::StrCat("invalid action \"", ToAbsl(action), "\": the type has ", ToAbsl(actions)),
                   "Name an action of the type: --action. `muster type show` prints its document.");
}

absl::Status InvalidFiles(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_FILES",
                   absl::StrCat("invalid files of the deployment: ", ToAbsl(why)),
                   "See \"Files\" in docs/templates.md.");
}

absl::Status InvalidBuild(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_BUILD",
                   absl::StrCat("invalid build: ", ToAbsl(why)),
                   "See \"Images from sources\" in docs/templates.md.");
}

absl::Status SetByBuild(std::string_view field) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DOCUMENT",
                   absl::StrCat("invalid document: /", ToAbsl(field), ": a build sets this field"),
                   "Remove it, and build the template: muster template build.");
}

absl::Status TypeNotBuildable(std::string_view type) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "TYPE_NOT_BUILDABLE",
                   absl::StrCat("templates of the type ", ToAbsl(type), " are not built: its document has no field build"),
                   "Store a version of the type that has `build` with a folder for the files (docs/templates.md).");
}

absl::Status TemplateFilesNotStored(std::string_view version) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "TEMPLATE_FILES_NOT_STORED",
                   absl::StrCat("the files of template ", ToAbsl(version), " are not stored here"),
                   absl::StrCat("They are stored while the build of the version is: it was removed, or ran in another fleet, or the version was not built. Build from the source itself, which muster template show ", ToAbsl(version), " names."));
}

absl::Status TemplateSourceDiffers(std::string_view version) {
  return MakeError(absl::StatusCode::kAlreadyExists, "VERSION_EXISTS",
                   absl::StrCat("template ", ToAbsl(version), " exists, and was not built from this source"),
                   "A version never changes. Give the document a new version.");
}

absl::Status InvalidDeployment(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_COMMAND",
                   absl::StrCat("invalid deployment: ", ToAbsl(why)),
                   "Send a command as deployments.proto describes it, or use muster deploy.");
}

absl::Status DeploymentNotFound(std::string_view deployment) {
  return MakeError(absl::StatusCode::kNotFound, "DEPLOYMENT_NOT_FOUND",
                   absl::StrCat("deployment \"", ToAbsl(deployment), "\" not found"),
                   "List the deployments: muster deployment list.");
}

absl::Status DeploymentExists(std::string_view deployment) {
  return MakeError(absl::StatusCode::kAlreadyExists, "DEPLOYMENT_EXISTS",
                   absl::StrCat("deployment ", ToAbsl(deployment), " exists with other content"),
                   "Use a new id for a new deployment.");
}

absl::Status DeploymentOfJobExists(std::string_view job, std::string_view deployment) {
  return MakeError(absl::StatusCode::kAlreadyExists, "DEPLOYMENT_EXISTS",
                   absl::StrCat("job ", ToAbsl(job), " is the job of deployment ", ToAbsl(deployment)),
                   "Sign a command with a new job id for a new deployment.");
}

absl::Status TooManyDeployments(std::string_view whose, int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_DEPLOYMENTS",
                   absl::StrCat("the limit of deployments", ToAbsl(whose), " that have not ended, ", limit, ", is reached"),
                   "Wait until some have ended, or cancel them: muster deployment list."),
                        absl::Seconds(10));
}

absl::Status DeploymentNotEnded(std::string_view deployment) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "DEPLOYMENT_NOT_ENDED",
                   absl::StrCat("deployment ", ToAbsl(deployment), " has not ended"),
                   absl::StrCat("Wait until it has ended (muster deployment show ", ToAbsl(deployment), "), or cancel it: muster deployment cancel ", ToAbsl(deployment), "."));
}

absl::Status NotRetriable(std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not tried again: ", ToAbsl(why)),
                   absl::StrCat("Name only nodes of the deployment on which it may be tried again: muster deployment show ", ToAbsl(deployment), ". `muster deployment retry --help` explains which these are."));
}

absl::Status DeploymentRetried(std::string_view deployment, std::string_view why, std::string_view by) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not tried again: ", ToAbsl(why)),
                   absl::StrCat("Retry that one: muster deployment retry ", ToAbsl(by), "."));
}

absl::Status SuccessNotRetriable(std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not tried again: ", ToAbsl(why)),
                   "Create a new deployment if it is to run once more: muster deploy.");
}

absl::Status RetryMayRunTwice(std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not tried again: ", ToAbsl(why)),
                   "Check on the nodes whether it ran. --force tries it again there also if it may run a second time.");
}

absl::Status DestroyedNotRetriable(std::string_view deployment, std::string_view by) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not tried again: deployment ", ToAbsl(by), " destroys it"),
                   "Create a new deployment: muster deploy.");
}

absl::Status DestructionNotRetriable(std::string_view deployment, std::string_view destroys) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " destroys deployment ", ToAbsl(destroys), ", and is not tried again itself"),
                   absl::StrCat("Destroy ", ToAbsl(destroys), " again: muster deployment destroy ", ToAbsl(destroys), "."));
}

absl::Status BuildNotRetriable(std::string_view deployment) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is a build: it is neither tried again nor destroyed"),
                   "Build it again: muster template build.");
}

absl::Status NotConformant(std::string_view problem) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_CONFORMANT",
                   absl::StrCat("the baseline of conformance does not admit ", ToAbsl(problem)),
                   "Run the probes there: muster conformance run. `muster conformance show NODE` prints what differs. --skip-conformance deploys without the check.");
}

absl::Status ConformanceSkippedThroughGateway(std::string_view caller) {
  return MakeError(absl::StatusCode::kPermissionDenied, "CONFORMANCE_NOT_SKIPPED",
                   absl::StrCat(ToAbsl(caller), " may not skip the check of conformance through a gateway"),
                   "Call the service directly: muster deploy --skip-conformance.");
}

absl::Status ConformanceTypeThroughGateway(std::string_view caller) {
  return MakeError(absl::StatusCode::kPermissionDenied, "CONFORMANCE_TYPE_REFUSED",
                   absl::StrCat(ToAbsl(caller), " may not store a type named conformance through a gateway"),
                   "Call the service directly: muster type push.");
}

absl::Status BaselineNeedsNodes() {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_CONFORMANT",
                   "the baseline of conformance does not admit a deployment for all nodes",
                   "Name the nodes: --node, --nodes-file or --label. --skip-conformance deploys on all nodes without the check.");
}

absl::Status NoConformanceReport(std::string_view node) {
  return MakeError(absl::StatusCode::kNotFound, "NO_CONFORMANCE_REPORT",
                   absl::StrCat("node ", ToAbsl(node), " has no report of conformance"),
                   absl::StrCat("Check the name (muster nodes), then run the probes on the node: muster conformance run --node ", ToAbsl(node), "."));
}

absl::Status NoBaseline() {
  return MakeError(absl::StatusCode::kNotFound, "NO_BASELINE",
                   "there is no baseline of conformance",
                   "Set one from the report of a node: muster conformance baseline set NODE.");
}

absl::Status InvalidBaseline(std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_BASELINE",
                   absl::StrCat("invalid baseline: ", ToAbsl(problem)),
                   "Correct the request, and send it again.");
}

absl::Status NoDestroyAction(std::string_view type) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_DESTROY_ACTION",
                   absl::StrCat("the type ", ToAbsl(type), " has no action \"destroy\""),
                   "Remove by hand what the deployment created. Later deployments can be destroyed if you store a new version of the type with `actions: [deploy, destroy]`.");
}

absl::Status NothingToDestroy(std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOTHING_TO_DESTROY",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not destroyed: ", ToAbsl(why)),
                   absl::StrCat("Name only nodes of the deployment on which it may be destroyed: muster deployment show ", ToAbsl(deployment), ". `muster deployment destroy --help` explains which these are."));
}

absl::Status NeverStartedNothingToDestroy(std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOTHING_TO_DESTROY",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not destroyed: ", ToAbsl(why)),
                   "Nothing is to be done: it has created nothing there.");
}

absl::Status DestructionMayRunTwice(std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOTHING_TO_DESTROY",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not destroyed: ", ToAbsl(why)),
                   "Check on the nodes whether it was destroyed. --force destroys it there also if that may run a second time.");
}

absl::Status DestroyActionNotDestroyed(std::string_view deployment) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOTHING_TO_DESTROY",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not destroyed: its action is \"destroy\""),
                   "If it failed, run the action again in a new deployment: muster deploy --action destroy.");
}

absl::Status DeploymentDestroyed(std::string_view deployment, std::string_view by) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "DEPLOYMENT_DESTROYED",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is destroyed already, by deployment ", ToAbsl(by)),
                   absl::StrCat("Show the destruction: muster deployment show ", ToAbsl(by), "."));
}

absl::Status CommandNotKept(std::string_view deployment) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "COMMAND_NOT_KEPT",
                   absl::StrCat("the command of deployment ", ToAbsl(deployment), " is not stored: an earlier version of Muster removed it at the end"),
                   "Create a new deployment: muster deploy.");
}

absl::Status InvalidSecrets(std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_SECRETS",
                   absl::StrCat("invalid secrets: ", ToAbsl(problem)),
                   "Correct the secrets: `muster deploy --secret NAME=SECRET`, with the names in the document of the type or template.");
}

absl::Status InvalidSecretValue(std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_SECRETS",
                   absl::StrCat("invalid secret: ", ToAbsl(problem)),
                   "Correct the name or the value, and store it: muster secret put NAME --file FILE.");
}

absl::Status SecretOfSourceNotFound(std::string_view why) {
  return MakeError(absl::StatusCode::kNotFound, "SECRET_NOT_FOUND",
                   why,
                   "The deployment names this version, and the number of a deleted version is never used again. Create a new deployment, which has the newest version: muster deploy. If there is none, store one first: muster secret put NAME --file FILE.");
}

absl::Status SecretNotFound(std::string_view secret) {
  return MakeError(absl::StatusCode::kNotFound, "SECRET_NOT_FOUND",
                   absl::StrCat("secret \"", ToAbsl(secret), "\" not found"),
                   "List the secrets and their versions: muster secret list. Store one: muster secret put NAME --file FILE.");
}

absl::Status TooManySecrets(int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_SECRETS",
                   absl::StrCat("there are ", limit, " secrets, which is the limit"),
                   "Delete secrets that nothing uses: muster secret delete.");
}

absl::Status SecretsRefused(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "SECRETS_REFUSED",
                   absl::StrCat("the request for secrets is refused: ", ToAbsl(why)),
                   "The log of the jobs service names the node and the relay of the request. If nothing else failed there, revoke the node: muster node revoke.");
}

absl::Status SecretsClosed(std::string_view job, std::string_view node, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SECRETS_CLOSED",
                   absl::StrCat("the secrets of job ", ToAbsl(job), " are not for the node ", ToAbsl(node), " any more: ", ToAbsl(why)),
                   "Create a new deployment: muster deploy.");
}

absl::Status SecretUnreadable(std::string_view secret) {
  return MakeError(absl::StatusCode::kDataLoss, "SECRET_UNREADABLE",
                   absl::StrCat("the stored value of secret \"", ToAbsl(secret), "\" cannot be decrypted: it is damaged, or jobs/store.key is not the key that encrypted it"),
                   "Restore store.key from a backup, or store the secret again: muster secret put.");
}

absl::Status SecretUnavailable(std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "SECRET_UNAVAILABLE",
                   absl::StrCat("the secrets of the deployment are not available: ", ToAbsl(why)),
                   "Remove the cause, and try the deployment again: muster deployment retry.");
}

}  // namespace muster::errors
