// Generated from cli.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/cli.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status Usage(std::string_view message, std::string_view next_step) {
  return MakeError(absl::StatusCode::kInvalidArgument, "USAGE",
                   message,
                   next_step);
}

absl::Status NoGateway() {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_GATEWAY",
                   "the context names no gateway",
                   "Create a new context with: muster operator add.");
}

absl::Status InvalidGatewayAnswer() {
  return MakeError(absl::StatusCode::kInternal, "INVALID_ANSWER",
                   "the gateway's answer contains no link",
                   "Check that the gateway and this program have the same version.");
}

absl::Status GatewayUnreachable(std::string_view cause) {
  return MakeError(absl::StatusCode::kUnavailable, "GATEWAY_UNREACHABLE",
                   cause,
                   "Check that the services are running and that this machine can reach the address.");
}

absl::Status LocalServicesUnreachable(std::string_view cause) {
  return MakeError(absl::StatusCode::kUnavailable, "UNREACHABLE",
                   cause,
                   "Start the services on this machine: muster up.");
}

absl::Status DownloadDigestMismatch() {
  return MakeError(absl::StatusCode::kDataLoss, "DIGEST_MISMATCH",
                   "the SHA-256 of the received file is not the expected one",
                   "Try again: the download starts from the beginning. If it fails again, the stored file is damaged: muster verify.");
}

absl::Status DownloadSizeMismatch(int64_t received, int64_t expected) {
  return MakeError(absl::StatusCode::kDataLoss, "SIZE_MISMATCH",
                   absl::StrCat("received ", received, " bytes, expected ", expected),
                   "Try again: the download starts from the beginning. If it fails again, the stored file is damaged: muster verify.");
}

absl::Status InvalidDuration(std::string_view text) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DURATION",
                   absl::StrCat("\"", ToAbsl(text), "\" is not a duration"),
                   "Write a positive number and a unit (s, m, h or d), such as 90s, 1h30m or 1d.");
}

absl::Status NoContextForStatus(std::string_view path) {
  return MakeError(absl::StatusCode::kNotFound, "CONTEXT_NOT_FOUND",
                   absl::StrCat("operator context ", ToAbsl(path), " not found"),
                   "Name a context file (--context FILE or MUSTER_CONTEXT), or the credentials of a run (--credentials FILE).");
}

absl::Status NodeNotInArchive(std::string_view node) {
  return MakeError(absl::StatusCode::kNotFound, "NODE_NOT_IN_ARCHIVE",
                   absl::StrCat("the archive has no results of node ", ToAbsl(node)),
                   "List its nodes with `muster results --mode detailed` without --node.");
}

absl::Status UnknownPlugin(std::string_view cause) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PLUGIN",
                   cause,
                   "Name a built-in plugin (hostfacts, systemd-logs), or give a definition: -f FILE.");
}

absl::Status InvalidDefinition(std::string_view cause) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PLUGIN",
                   cause,
                   "Correct the definition; docs/plugins.md describes it.");
}

absl::Status FileNameIsNoShareId(std::string_view name) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_SHARE",
                   absl::StrCat("the file name \"", ToAbsl(name), "\" cannot be the id of a shared file"),
                   "Give an id: --id ID, with at most 253 of A-Z a-z 0-9 . _ - that begins with a letter or digit.");
}

absl::Status NotANode(std::string_view cause, std::string_view as_operator) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_JOINED",
                   cause,
                   absl::StrCat("As an operator, ", ToAbsl(as_operator), ". On a node, join the fleet first: muster node join."));
}

absl::Status NoRuns() {
  return MakeError(absl::StatusCode::kNotFound, "NO_RUNS",
                   "no run found",
                   "Start one: muster run --plugin hostfacts --node NODE.");
}

absl::Status NoRunBeginsWith(std::string_view text) {
  return MakeError(absl::StatusCode::kNotFound, "RUN_NOT_FOUND",
                   absl::StrCat("no run id begins with ", ToAbsl(text)),
                   "List the runs with `muster runs`.");
}

absl::Status NoJobBeginsWith(std::string_view text) {
  return MakeError(absl::StatusCode::kNotFound, "JOB_NOT_FOUND",
                   absl::StrCat("no job id begins with ", ToAbsl(text)),
                   "List the jobs with `muster job list`.");
}

absl::Status NoDeploymentBeginsWith(std::string_view text) {
  return MakeError(absl::StatusCode::kNotFound, "DEPLOYMENT_NOT_FOUND",
                   absl::StrCat("no deployment id begins with ", ToAbsl(text)),
                   "List the deployments with `muster deployment list`.");
}

absl::Status OtherCommandReturned(std::string_view deployment) {
  return MakeError(absl::StatusCode::kPermissionDenied, "COMMAND_REFUSED",
                   absl::StrCat("the jobs service returned another command than that of deployment ", ToAbsl(deployment)),
                   "Nothing was signed. Check the jobs service.");
}

absl::Status OtherSecretsReturned() {
  return MakeError(absl::StatusCode::kPermissionDenied, "COMMAND_REFUSED",
                   "the jobs service returned other secrets than those of --secret",
                   "Nothing was signed. Check the jobs service.");
}

absl::Status OtherWorkspaceReturned() {
  return MakeError(absl::StatusCode::kPermissionDenied, "COMMAND_REFUSED",
                   "the jobs service returned another workspace than that of the command",
                   "Nothing was signed. Check the jobs service.");
}

absl::Status NoNodeHasLabels(std::string_view labels) {
  return MakeError(absl::StatusCode::kNotFound, "NODE_NOT_FOUND",
                   absl::StrCat("no enrolled node has the labels ", ToAbsl(labels)),
                   "List the nodes and their labels with `muster nodes`.");
}

absl::Status PluginNotInRun(std::string_view plugin) {
  return MakeError(absl::StatusCode::kNotFound, "PLUGIN_NOT_FOUND",
                   absl::StrCat("the run has no plugin \"", ToAbsl(plugin), "\""),
                   "List the plugins of the run: muster status RUN.");
}

absl::Status NodeNotInPlan(std::string_view plugin, std::string_view node) {
  return MakeError(absl::StatusCode::kPermissionDenied, "PAIR_NOT_PLANNED",
                   absl::StrCat("the plan of the run does not contain plugin \"", ToAbsl(plugin), "\" on node \"", ToAbsl(node), "\""),
                   "List the nodes of the plan: muster status RUN --json.");
}

absl::Status InvalidBindAddress(std::string_view address) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_HOST",
                   absl::StrCat("\"", ToAbsl(address), "\" is not an IP address"),
                   "Give an IPv4 or IPv6 address of this machine without a port, such as 127.0.0.1 for this machine only, or 0.0.0.0 for all networks.");
}

absl::Status NotATarget(std::string_view node, std::string_view noun, std::string_view list) {
  return MakeError(absl::StatusCode::kNotFound, "NOT_A_TARGET",
                   absl::StrCat("node \"", ToAbsl(node), "\" is not a target of the ", ToAbsl(noun)),
                   absl::StrCat("List its nodes: ", ToAbsl(list)));
}

absl::Status NoAnswer() {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "NO_ANSWER",
                   "the service accepted the connection but did not answer in time",
                   "Check that the service is not stopped or overloaded, and read its log. If the command makes a change, look whether it was made before you repeat it.");
}

absl::Status OutputExists(std::string_view file) {
  return MakeError(absl::StatusCode::kAlreadyExists, "FILE_EXISTS",
                   absl::StrCat(ToAbsl(file), " already exists"),
                   "Choose another name, or remove the file if its content is not needed any more.");
}

absl::Status OutputNotAFile(std::string_view file, std::string_view kind) {
  return MakeError(absl::StatusCode::kInvalidArgument, "NOT_A_FILE",
                   absl::StrCat(ToAbsl(file), " is ", ToAbsl(kind), ", not a regular file"),
                   "Name a regular file, or one that does not exist yet; for a link, name its target.");
}

absl::Status OutputFolderMissing(std::string_view folder) {
  return MakeError(absl::StatusCode::kNotFound, "FILE_NOT_FOUND",
                   absl::StrCat("folder ", ToAbsl(folder), " not found"),
                   "Create the folder, or choose another one.");
}

absl::Status OutputClosed() {
  return MakeError(absl::StatusCode::kAborted, "OUTPUT_CLOSED",
                   "the reader of standard output has closed it",
                   "Read the whole output, or write it to a file.");
}

absl::Status InvalidCredentials(std::string_view cause) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CREDENTIALS",
                   cause,
                   "Use the unchanged file that `muster run` wrote, or start a new run.");
}

absl::Status CredentialsTooOld(std::string_view fault, std::string_view limit) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "CREDENTIALS_TOO_OLD",
                   absl::StrCat("the credentials file ", ToAbsl(fault), "; the limit is ", ToAbsl(limit)),
                   "Name a newer run, raise the limit with --max-age, or use an operator's context: --context FILE.");
}

absl::Status CredentialsOfOtherRun(std::string_view run, std::string_view requested) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CREDENTIALS_OF_OTHER_RUN",
                   absl::StrCat("the credentials file is for run ", ToAbsl(run), ", not for ", ToAbsl(requested)),
                   "Omit the run, name the credentials file of that run, or use an operator's context: --context FILE.");
}

absl::Status CredentialsExpired(std::string_view end) {
  return MakeError(absl::StatusCode::kUnauthenticated, "CERTIFICATE_EXPIRED",
                   absl::StrCat("the certificate expired at ", ToAbsl(end)),
                   "The credentials file of a run expires a day after the run's deadline. Use an operator's context to see the run: --context FILE.");
}

absl::Status CredentialsFolderExposed(std::string_view folder) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SECRET_FILE_EXPOSED",
                   absl::StrCat(ToAbsl(folder), " is not a folder of this user"),
                   "Remove it, and find out who created it.");
}

absl::Status CredentialsNotFound() {
  return MakeError(absl::StatusCode::kNotFound, "CREDENTIALS_NOT_FOUND",
                   "the credentials file does not exist",
                   "Use the file that `muster run` writes for each run.");
}

absl::Status InvalidStatus(std::string_view cause) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_STATUS",
                   absl::StrCat("the answer is not the status of a run: ", ToAbsl(cause)),
                   "Check that the address in the credentials file is a Muster status listener.");
}

absl::Status NoFreePort(int64_t first, int64_t last) {
  return MakeError(absl::StatusCode::kResourceExhausted, "NO_FREE_PORT",
                   absl::StrCat("no free port between ", first, " and ", last),
                   "Choose the ports with --port.");
}

absl::Status InvalidPortRange(std::string_view text) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PORT_RANGE",
                   absl::StrCat("\"", ToAbsl(text), "\" is not a range of ports"),
                   "Write FIRST-LAST, such as 7450-7949, or 0 for any free ports.");
}

absl::Status InvalidHostPattern(std::string_view text, std::string_view rule) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_HOST_PATTERN",
                   absl::StrCat("\"", ToAbsl(text), "\" is not a host name pattern for runs"),
                   absl::StrCat("Write ", ToAbsl(rule), ", and resolve all these names to this machine."));
}

absl::Status PathTooLong(int64_t limit, std::string_view path) {
  return MakeError(absl::StatusCode::kInvalidArgument, "PATH_TOO_LONG",
                   absl::StrCat("the path of a socket may have at most ", limit, " characters: ", ToAbsl(path)),
                   "Set MUSTER_HOME to a folder with a shorter path.");
}

absl::Status NoSupervisor(std::string_view path) {
  return MakeError(absl::StatusCode::kUnavailable, "NO_SUPERVISOR",
                   absl::StrCat("no supervisor answers at ", ToAbsl(path)),
                   "Start it with `muster up`.");
}

absl::Status NoHome() {
  return MakeError(absl::StatusCode::kNotFound, "NO_HOME",
                   "neither MUSTER_HOME nor HOME is set",
                   "Set MUSTER_HOME to a folder that only you can access.");
}

absl::Status ServiceFailed(std::string_view service, std::string_view cause, std::string_view log) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SERVICE_FAILED",
                   absl::StrCat(ToAbsl(service), " did not become ready: ", ToAbsl(cause)),
                   absl::StrCat("See its log: ", ToAbsl(log)));
}

absl::Status ServiceCannotListen(std::string_view service, std::string_view address, std::string_view cause) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "LISTEN_FAILED",
                   absl::StrCat(ToAbsl(service), " cannot listen on ", ToAbsl(address), ": ", ToAbsl(cause)),
                   "Stop the program that uses the port, or choose other ports; an address has to be one of this machine: muster up --help.");
}

absl::Status AddressesInUse() {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SERVICES_RUNNING",
                   "the services are running with other addresses",
                   "Stop the services with `muster down`, then repeat the command. Nothing was changed.");
}

absl::Status RetentionInUse() {
  return MakeError(absl::StatusCode::kFailedPrecondition, "SERVICES_RUNNING",
                   "the services are running with other rules of retention",
                   "Stop the services with `muster down`, then repeat the command. The rules were not changed.");
}

absl::Status HomeBusy(std::string_view home) {
  return MakeError(absl::StatusCode::kUnavailable, "HOME_BUSY",
                   absl::StrCat("another `muster up` or `muster down` is running in ", ToAbsl(home)),
                   "Wait until it is done, or stop it.");
}

absl::Status InstanceAlreadyRunning(std::string_view path) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "ALREADY_RUNNING",
                   absl::StrCat("another process has locked ", ToAbsl(path)),
                   "Stop it with `muster down`.");
}

absl::Status HomeInUse(std::string_view home) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "ALREADY_RUNNING",
                   absl::StrCat("the services of ", ToAbsl(home), " are running"),
                   "Stop them (muster down), or set MUSTER_HOME to another folder.");
}

absl::Status InvalidListenAddress(std::string_view address, std::string_view cause) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_ADDRESS",
                   absl::StrCat(ToAbsl(address), ": ", ToAbsl(cause)),
                   "Use an IPv4 or IPv6 address and a port, such as 0.0.0.0:7450.");
}

absl::Status AddressInUse(std::string_view address) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "ADDRESS_IN_USE",
                   absl::StrCat("another program listens on ", ToAbsl(address)),
                   "Choose another port, or stop that program.");
}

absl::Status NameTaken(std::string_view name, std::string_view address) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NAME_TAKEN",
                   absl::StrCat(ToAbsl(name), " already listens on ", ToAbsl(address)),
                   "Release it first.");
}

absl::Status TooManySockets(int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_SOCKETS",
                   absl::StrCat("the limit of ", limit, " listening sockets is reached"),
                   "Release the sockets of runs that have ended.");
}

absl::Status InvalidServiceConfig(std::string_view file, std::string_view cause) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CONFIG",
                   absl::StrCat(ToAbsl(file), ": ", ToAbsl(cause)),
                   "Correct the file, or remove it: `muster up` creates a new one.");
}

absl::Status ProgramFailed(std::string_view program, std::string_view how, std::string_view output) {
  return MakeError(absl::StatusCode::kInternal, "PROGRAM_FAILED",
                   absl::StrCat(ToAbsl(program), " --print-config: ", ToAbsl(how), ": ", ToAbsl(output)),
                   "Reinstall Muster: the program may be damaged.");
}

absl::Status ProgramMissing(std::string_view path) {
  return MakeError(absl::StatusCode::kNotFound, "PROGRAM_MISSING",
                   absl::StrCat("program ", ToAbsl(path), " not found"),
                   "Install it in the folder of `muster`, or set MUSTER_LIBEXEC to its folder.");
}

absl::Status InvalidSupervisorRequest(std::string_view fault) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_REQUEST",
                   fault,
                   "");
}

absl::Status FolderNotEmpty(std::string_view folder) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "FOLDER_NOT_EMPTY",
                   absl::StrCat(ToAbsl(folder), " exists and is not empty"),
                   "Name another folder, or move its content away.");
}

absl::Status HomeNotEmpty(std::string_view folder) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "FOLDER_NOT_EMPTY",
                   absl::StrCat(ToAbsl(folder), " exists and is not empty"),
                   "Set MUSTER_HOME to another folder, or move its content away.");
}

absl::Status RestoreUnfinished(std::string_view folder) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RESTORE_UNFINISHED",
                   absl::StrCat("a restore to ", ToAbsl(folder), " did not end, so its files are incomplete"),
                   "Remove the content of the folder, and run `muster restore` again.");
}

absl::Status NotAHome(std::string_view folder) {
  return MakeError(absl::StatusCode::kNotFound, "NOT_A_HOME",
                   absl::StrCat(ToAbsl(folder), " has no state of an aggregator"),
                   "Set MUSTER_HOME to the folder of the services on this machine.");
}

absl::Status BackupInHome(std::string_view folder) {
  return MakeError(absl::StatusCode::kInvalidArgument, "BACKUP_IN_HOME",
                   absl::StrCat(ToAbsl(folder), " is in the home that is copied"),
                   "Name a folder outside of MUSTER_HOME.");
}

absl::Status NotABackup(std::string_view folder, std::string_view fault) {
  return MakeError(absl::StatusCode::kInvalidArgument, "NOT_A_BACKUP",
                   absl::StrCat(ToAbsl(folder), " is not a complete backup: ", ToAbsl(fault)),
                   "Name a folder that `muster backup` made.");
}

absl::Status BackupDamaged(std::string_view file, std::string_view fault) {
  return MakeError(absl::StatusCode::kDataLoss, "BACKUP_DAMAGED",
                   absl::StrCat("backup file ", ToAbsl(file), " ", ToAbsl(fault)),
                   "Restore another backup, and check the disk of this one.");
}

absl::Status SourceRefused(std::string_view source, std::string_view entry, std::string_view why, std::string_view next_step) {
  return MakeError(absl::StatusCode::kInvalidArgument, "SOURCE_REFUSED",
                   absl::StrCat(ToAbsl(source), ": \"", ToAbsl(entry), "\" ", ToAbsl(why)),
                   next_step);
}

absl::Status SourceUnusable(std::string_view source, std::string_view why, std::string_view next_step) {
  return MakeError(absl::StatusCode::kInvalidArgument, "SOURCE_UNUSABLE",
                   absl::StrCat(ToAbsl(source), ": ", ToAbsl(why)),
                   next_step);
}

absl::Status GitFailed(std::string_view url, std::string_view why, std::string_view next_step) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "GIT_FAILED",
                   absl::StrCat(ToAbsl(url), " cannot be fetched: ", ToAbsl(why)),
                   next_step);
}

absl::Status BundleUnusable(std::string_view file, std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "BUNDLE_UNUSABLE",
                   absl::StrCat("bundle ", ToAbsl(file), ": ", ToAbsl(why)),
                   "Nothing was pushed. Copy the file again, or create it again: muster template pull.");
}

absl::Status BundleVersionExists(std::string_view what, std::string_view version) {
  return MakeError(absl::StatusCode::kAlreadyExists, "VERSION_EXISTS",
                   absl::StrCat("the jobs service has ", ToAbsl(what), " ", ToAbsl(version), " with other content than the bundle"),
                   "Nothing was pushed. A version never changes: create a new version in the fleet of the bundle, and pull that.");
}

absl::Status BundleNeedsSpace(std::string_view folder, std::string_view needed, std::string_view free) {
  return MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                   absl::StrCat(ToAbsl(folder), " has ", ToAbsl(free), " of free space, and the bundle needs ", ToAbsl(needed)),
                   "Free space there, or set TMPDIR to a folder of another disk.");
}

absl::Status ImageNotInRegistry(std::string_view version, std::string_view image) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "IMAGE_NOT_PORTABLE",
                   absl::StrCat(ToAbsl(version), " runs the image ", ToAbsl(image), ", which is named by its id and not by a registry"),
                   "Push the image to a registry, and store a version that names it there as NAME@sha256:DIGEST.");
}

absl::Status ImageCopyFailed(std::string_view image, std::string_view why, std::string_view next_step) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "IMAGE_COPY_FAILED",
                   absl::StrCat("image ", ToAbsl(image), " cannot be copied: ", ToAbsl(why)),
                   next_step);
}

}  // namespace muster::errors
