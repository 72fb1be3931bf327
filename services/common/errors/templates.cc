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
                   "Wait until it has ended (muster deployment show), or cancel it: muster deployment cancel.");
}

absl::Status NotRetriable(std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not tried again: ", ToAbsl(why)),
                   "Name only nodes on which it failed. `muster deployment retry --help` explains --force, for nodes on which it is not known whether it ran. If another deployment retries it, retry that one.");
}

absl::Status DestructionNotRetriable(std::string_view deployment, std::string_view destroys) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " destroys deployment ", ToAbsl(destroys), ", and is not tried again itself"),
                   absl::StrCat("Destroy ", ToAbsl(destroys), " again: muster deployment destroy."));
}

absl::Status BuildNotRetriable(std::string_view deployment) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_RETRIABLE",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is a build: it is neither tried again nor destroyed"),
                   "Build it again: muster template build.");
}

absl::Status NoDestroyAction(std::string_view type) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_DESTROY_ACTION",
                   absl::StrCat("the type ", ToAbsl(type), " has no action \"destroy\""),
                   "A later version of the type may have it: `actions: [deploy, destroy]` in its document. Remove what this deployment created by hand.");
}

absl::Status NothingToDestroy(std::string_view deployment, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOTHING_TO_DESTROY",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is not destroyed: ", ToAbsl(why)),
                   "Name only nodes on which it started: muster deployment show. `muster deployment destroy --help` explains --force, for nodes on which it is not known whether an earlier destruction ran.");
}

absl::Status DeploymentDestroyed(std::string_view deployment, std::string_view by) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "DEPLOYMENT_DESTROYED",
                   absl::StrCat("deployment ", ToAbsl(deployment), " is destroyed already, by deployment ", ToAbsl(by)),
                   "Show the destruction: muster deployment show.");
}

absl::Status CommandNotKept(std::string_view deployment) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "COMMAND_NOT_KEPT",
                   absl::StrCat("the command of deployment ", ToAbsl(deployment), " is not stored: an earlier version of Muster removed it at the end"),
                   "Create a new deployment: muster deploy.");
}

}  // namespace muster::errors
