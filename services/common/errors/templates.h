// Generated from templates.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_TEMPLATES_H_
#define MUSTER_SERVICES_COMMON_ERRORS_TEMPLATES_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Templates and deployments.
namespace muster::errors {

// INVALID_ARGUMENT, INVALID_SCHEMA.
absl::Status InvalidSchema(std::string_view place, std::string_view problem);
// INVALID_ARGUMENT, INVALID_DOCUMENT.
absl::Status InvalidDocument(std::string_view problem);
// INVALID_ARGUMENT, INVALID_DOCUMENT.
absl::Status WrongKind(std::string_view kind, std::string_view wanted, std::string_view command);
// INVALID_ARGUMENT, INVALID_DOCUMENT.
absl::Status DeploymentImageDiffers(std::string_view image, std::string_view of_type);
// INVALID_ARGUMENT, INVALID_DOCUMENT.
absl::Status DocumentTooLarge(int64_t limit);
// INVALID_ARGUMENT, INVALID_REFERENCE.
absl::Status InvalidReference(std::string_view what, std::string_view reference);
// NOT_FOUND, TYPE_NOT_FOUND.
absl::Status TypeNotFound(std::string_view reference);
// NOT_FOUND, TEMPLATE_NOT_FOUND.
absl::Status TemplateNotFound(std::string_view reference);
// ALREADY_EXISTS, VERSION_EXISTS.
absl::Status VersionExists(std::string_view what, std::string_view version);
// RESOURCE_EXHAUSTED, TOO_MANY_VERSIONS.
absl::Status TooManyVersions(std::string_view what, int64_t limit);
// INVALID_ARGUMENT, INVALID_PARAMETERS.
absl::Status InvalidParameters(std::string_view problems);
// INVALID_ARGUMENT, INVALID_PARAMETERS.
absl::Status InvalidAction(std::string_view action, std::string_view actions);
// INVALID_ARGUMENT, INVALID_FILES.
absl::Status InvalidFiles(std::string_view why);
// INVALID_ARGUMENT, INVALID_BUILD.
absl::Status InvalidBuild(std::string_view why);
// INVALID_ARGUMENT, INVALID_DOCUMENT.
absl::Status SetByBuild(std::string_view field);
// FAILED_PRECONDITION, TYPE_NOT_BUILDABLE.
absl::Status TypeNotBuildable(std::string_view type);
// FAILED_PRECONDITION, TEMPLATE_FILES_NOT_STORED.
absl::Status TemplateFilesNotStored(std::string_view version);
// ALREADY_EXISTS, VERSION_EXISTS.
absl::Status TemplateSourceDiffers(std::string_view version);
// INVALID_ARGUMENT, INVALID_COMMAND.
absl::Status InvalidDeployment(std::string_view why);
// NOT_FOUND, DEPLOYMENT_NOT_FOUND.
absl::Status DeploymentNotFound(std::string_view deployment);
// ALREADY_EXISTS, DEPLOYMENT_EXISTS.
absl::Status DeploymentExists(std::string_view deployment);
// ALREADY_EXISTS, DEPLOYMENT_EXISTS.
absl::Status DeploymentOfJobExists(std::string_view job, std::string_view deployment);
// RESOURCE_EXHAUSTED, TOO_MANY_DEPLOYMENTS.
absl::Status TooManyDeployments(std::string_view whose, int64_t limit);
// FAILED_PRECONDITION, DEPLOYMENT_NOT_ENDED.
absl::Status DeploymentNotEnded(std::string_view deployment);
// FAILED_PRECONDITION, NOT_RETRIABLE.
absl::Status NotRetriable(std::string_view deployment, std::string_view why);
// FAILED_PRECONDITION, NOT_RETRIABLE.
absl::Status DeploymentRetried(std::string_view deployment, std::string_view why, std::string_view by);
// FAILED_PRECONDITION, NOT_RETRIABLE.
absl::Status SuccessNotRetriable(std::string_view deployment, std::string_view why);
// FAILED_PRECONDITION, NOT_RETRIABLE.
absl::Status RetryMayRunTwice(std::string_view deployment, std::string_view why);
// FAILED_PRECONDITION, NOT_RETRIABLE.
absl::Status DestroyedNotRetriable(std::string_view deployment, std::string_view by);
// FAILED_PRECONDITION, NOT_RETRIABLE.
absl::Status DestructionNotRetriable(std::string_view deployment, std::string_view destroys);
// FAILED_PRECONDITION, NOT_RETRIABLE.
absl::Status BuildNotRetriable(std::string_view deployment);
// FAILED_PRECONDITION, NOT_CONFORMANT.
absl::Status NotConformant(std::string_view problem);
// PERMISSION_DENIED, CONFORMANCE_NOT_SKIPPED.
absl::Status ConformanceSkippedThroughGateway(std::string_view caller);
// PERMISSION_DENIED, CONFORMANCE_TYPE_REFUSED.
absl::Status ConformanceTypeThroughGateway(std::string_view caller);
// FAILED_PRECONDITION, NOT_CONFORMANT.
absl::Status BaselineNeedsNodes();
// NOT_FOUND, NO_CONFORMANCE_REPORT.
absl::Status NoConformanceReport(std::string_view node);
// NOT_FOUND, NO_BASELINE.
absl::Status NoBaseline();
// INVALID_ARGUMENT, INVALID_BASELINE.
absl::Status InvalidBaseline(std::string_view problem);
// FAILED_PRECONDITION, NO_DESTROY_ACTION.
absl::Status NoDestroyAction(std::string_view type);
// FAILED_PRECONDITION, NOTHING_TO_DESTROY.
absl::Status NothingToDestroy(std::string_view deployment, std::string_view why);
// FAILED_PRECONDITION, NOTHING_TO_DESTROY.
absl::Status NeverStartedNothingToDestroy(std::string_view deployment, std::string_view why);
// FAILED_PRECONDITION, NOTHING_TO_DESTROY.
absl::Status DestructionMayRunTwice(std::string_view deployment, std::string_view why);
// FAILED_PRECONDITION, NOTHING_TO_DESTROY.
absl::Status DestroyActionNotDestroyed(std::string_view deployment);
// FAILED_PRECONDITION, DEPLOYMENT_DESTROYED.
absl::Status DeploymentDestroyed(std::string_view deployment, std::string_view by);
// FAILED_PRECONDITION, COMMAND_NOT_KEPT.
absl::Status CommandNotKept(std::string_view deployment);
// INVALID_ARGUMENT, INVALID_SECRETS.
absl::Status InvalidSecrets(std::string_view problem);
// INVALID_ARGUMENT, INVALID_SECRETS.
absl::Status InvalidSecretValue(std::string_view problem);
// NOT_FOUND, SECRET_NOT_FOUND.
absl::Status SecretOfSourceNotFound(std::string_view why);
// NOT_FOUND, SECRET_NOT_FOUND.
absl::Status SecretNotFound(std::string_view secret);
// RESOURCE_EXHAUSTED, TOO_MANY_SECRETS.
absl::Status TooManySecrets(int64_t limit);
// PERMISSION_DENIED, SECRETS_REFUSED.
absl::Status SecretsRefused(std::string_view why);
// FAILED_PRECONDITION, SECRETS_CLOSED.
absl::Status SecretsClosed(std::string_view job, std::string_view node, std::string_view why);
// DATA_LOSS, SECRET_UNREADABLE.
absl::Status SecretUnreadable(std::string_view secret);
// UNAVAILABLE, SECRET_UNAVAILABLE.
absl::Status SecretUnavailable(std::string_view why);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_TEMPLATES_H_
