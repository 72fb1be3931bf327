// Generated from cli.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_CLI_H_
#define MUSTER_SERVICES_COMMON_ERRORS_CLI_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// The command line and the supervisor.
namespace muster::errors {

// INVALID_ARGUMENT, USAGE.
absl::Status Usage(std::string_view message, std::string_view next_step);
// FAILED_PRECONDITION, NO_GATEWAY.
absl::Status NoGateway();
// INTERNAL, INVALID_ANSWER.
absl::Status InvalidGatewayAnswer();
// UNAVAILABLE, GATEWAY_UNREACHABLE.
absl::Status GatewayUnreachable(std::string_view cause);
// UNAVAILABLE, UNREACHABLE.
absl::Status LocalServicesUnreachable(std::string_view cause);
// DATA_LOSS, DIGEST_MISMATCH.
absl::Status DownloadDigestMismatch();
// DATA_LOSS, SIZE_MISMATCH.
absl::Status DownloadSizeMismatch(int64_t received, int64_t expected);
// INVALID_ARGUMENT, INVALID_DURATION.
absl::Status InvalidDuration(std::string_view text);
// NOT_FOUND, CONTEXT_NOT_FOUND.
absl::Status NoContextForStatus(std::string_view path);
// NOT_FOUND, NODE_NOT_IN_ARCHIVE.
absl::Status NodeNotInArchive(std::string_view node);
// INVALID_ARGUMENT, INVALID_PLUGIN.
absl::Status UnknownPlugin(std::string_view cause);
// INVALID_ARGUMENT, INVALID_PLUGIN.
absl::Status InvalidDefinition(std::string_view cause);
// INVALID_ARGUMENT, INVALID_SHARE.
absl::Status FileNameIsNoShareId(std::string_view name);
// FAILED_PRECONDITION, NOT_JOINED.
absl::Status NotANode(std::string_view cause, std::string_view as_operator);
// NOT_FOUND, NO_RUNS.
absl::Status NoRuns();
// NOT_FOUND, RUN_NOT_FOUND.
absl::Status NoRunBeginsWith(std::string_view text);
// NOT_FOUND, JOB_NOT_FOUND.
absl::Status NoJobBeginsWith(std::string_view text);
// NOT_FOUND, DEPLOYMENT_NOT_FOUND.
absl::Status NoDeploymentBeginsWith(std::string_view text);
// PERMISSION_DENIED, COMMAND_REFUSED.
absl::Status OtherCommandReturned(std::string_view deployment);
// PERMISSION_DENIED, COMMAND_REFUSED.
absl::Status OtherSecretsReturned();
// PERMISSION_DENIED, COMMAND_REFUSED.
absl::Status OtherWorkspaceReturned();
// NOT_FOUND, NODE_NOT_FOUND.
absl::Status NoNodeHasLabels(std::string_view labels);
// NOT_FOUND, PLUGIN_NOT_FOUND.
absl::Status PluginNotInRun(std::string_view plugin);
// PERMISSION_DENIED, PAIR_NOT_PLANNED.
absl::Status NodeNotInPlan(std::string_view plugin, std::string_view node);
// INVALID_ARGUMENT, INVALID_HOST.
absl::Status InvalidBindAddress(std::string_view address);
// NOT_FOUND, NOT_A_TARGET.
absl::Status NotATarget(std::string_view node, std::string_view noun, std::string_view list);
// DEADLINE_EXCEEDED, NO_ANSWER.
absl::Status NoAnswer();
// ALREADY_EXISTS, FILE_EXISTS.
absl::Status OutputExists(std::string_view file);
// INVALID_ARGUMENT, NOT_A_FILE.
absl::Status OutputNotAFile(std::string_view file, std::string_view kind);
// NOT_FOUND, FILE_NOT_FOUND.
absl::Status OutputFolderMissing(std::string_view folder);
// ABORTED, OUTPUT_CLOSED.
absl::Status OutputClosed();
// INVALID_ARGUMENT, INVALID_CREDENTIALS.
absl::Status InvalidCredentials(std::string_view cause);
// FAILED_PRECONDITION, CREDENTIALS_TOO_OLD.
absl::Status CredentialsTooOld(std::string_view fault, std::string_view limit);
// INVALID_ARGUMENT, CREDENTIALS_OF_OTHER_RUN.
absl::Status CredentialsOfOtherRun(std::string_view run, std::string_view requested);
// UNAUTHENTICATED, CERTIFICATE_EXPIRED.
absl::Status CredentialsExpired(std::string_view end);
// FAILED_PRECONDITION, SECRET_FILE_EXPOSED.
absl::Status CredentialsFolderExposed(std::string_view folder);
// NOT_FOUND, CREDENTIALS_NOT_FOUND.
absl::Status CredentialsNotFound();
// INVALID_ARGUMENT, INVALID_STATUS.
absl::Status InvalidStatus(std::string_view cause);
// RESOURCE_EXHAUSTED, NO_FREE_PORT.
absl::Status NoFreePort(int64_t first, int64_t last);
// INVALID_ARGUMENT, INVALID_PORT_RANGE.
absl::Status InvalidPortRange(std::string_view text);
// INVALID_ARGUMENT, INVALID_HOST_PATTERN.
absl::Status InvalidHostPattern(std::string_view text, std::string_view rule);
// INVALID_ARGUMENT, PATH_TOO_LONG.
absl::Status PathTooLong(int64_t limit, std::string_view path);
// UNAVAILABLE, NO_SUPERVISOR.
absl::Status NoSupervisor(std::string_view path);
// NOT_FOUND, NO_HOME.
absl::Status NoHome();
// FAILED_PRECONDITION, SERVICE_FAILED.
absl::Status ServiceFailed(std::string_view service, std::string_view cause, std::string_view log);
// FAILED_PRECONDITION, LISTEN_FAILED.
absl::Status ServiceCannotListen(std::string_view service, std::string_view address, std::string_view cause);
// FAILED_PRECONDITION, SERVICES_RUNNING.
absl::Status AddressesInUse();
// FAILED_PRECONDITION, SERVICES_RUNNING.
absl::Status RetentionInUse();
// UNAVAILABLE, HOME_BUSY.
absl::Status HomeBusy(std::string_view home);
// FAILED_PRECONDITION, ALREADY_RUNNING.
absl::Status InstanceAlreadyRunning(std::string_view path);
// FAILED_PRECONDITION, ALREADY_RUNNING.
absl::Status HomeInUse(std::string_view home);
// INVALID_ARGUMENT, INVALID_ADDRESS.
absl::Status InvalidListenAddress(std::string_view address, std::string_view cause);
// FAILED_PRECONDITION, ADDRESS_IN_USE.
absl::Status AddressInUse(std::string_view address);
// FAILED_PRECONDITION, NAME_TAKEN.
absl::Status NameTaken(std::string_view name, std::string_view address);
// RESOURCE_EXHAUSTED, TOO_MANY_SOCKETS.
absl::Status TooManySockets(int64_t limit);
// INVALID_ARGUMENT, INVALID_CONFIG.
absl::Status InvalidServiceConfig(std::string_view file, std::string_view cause);
// INTERNAL, PROGRAM_FAILED.
absl::Status ProgramFailed(std::string_view program, std::string_view how, std::string_view output);
// NOT_FOUND, PROGRAM_MISSING.
absl::Status ProgramMissing(std::string_view path);
// INVALID_ARGUMENT, INVALID_REQUEST.
absl::Status InvalidSupervisorRequest(std::string_view fault);
// FAILED_PRECONDITION, FOLDER_NOT_EMPTY.
absl::Status FolderNotEmpty(std::string_view folder);
// FAILED_PRECONDITION, FOLDER_NOT_EMPTY.
absl::Status HomeNotEmpty(std::string_view folder);
// FAILED_PRECONDITION, RESTORE_UNFINISHED.
absl::Status RestoreUnfinished(std::string_view folder);
// NOT_FOUND, NOT_A_HOME.
absl::Status NotAHome(std::string_view folder);
// INVALID_ARGUMENT, BACKUP_IN_HOME.
absl::Status BackupInHome(std::string_view folder);
// INVALID_ARGUMENT, NOT_A_BACKUP.
absl::Status NotABackup(std::string_view folder, std::string_view fault);
// DATA_LOSS, BACKUP_DAMAGED.
absl::Status BackupDamaged(std::string_view file, std::string_view fault);
// INVALID_ARGUMENT, SOURCE_REFUSED.
absl::Status SourceRefused(std::string_view source, std::string_view entry, std::string_view why, std::string_view next_step);
// INVALID_ARGUMENT, SOURCE_UNUSABLE.
absl::Status SourceUnusable(std::string_view source, std::string_view why, std::string_view next_step);
// FAILED_PRECONDITION, GIT_FAILED.
absl::Status GitFailed(std::string_view url, std::string_view why, std::string_view next_step);
// INVALID_ARGUMENT, BUNDLE_UNUSABLE.
absl::Status BundleUnusable(std::string_view file, std::string_view why);
// ALREADY_EXISTS, VERSION_EXISTS.
absl::Status BundleVersionExists(std::string_view what, std::string_view version);
// RESOURCE_EXHAUSTED, DISK_FULL.
absl::Status BundleNeedsSpace(std::string_view folder, std::string_view needed, std::string_view free);
// FAILED_PRECONDITION, IMAGE_NOT_PORTABLE.
absl::Status ImageNotInRegistry(std::string_view version, std::string_view image);
// FAILED_PRECONDITION, IMAGE_COPY_FAILED.
absl::Status ImageCopyFailed(std::string_view image, std::string_view why, std::string_view next_step);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_CLI_H_
