// Generated from jobs.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_JOBS_H_
#define MUSTER_SERVICES_COMMON_ERRORS_JOBS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Jobs.
namespace muster::errors {

// NOT_FOUND, JOB_NOT_FOUND.
absl::Status JobNotFound(std::string_view job);
// ALREADY_EXISTS, JOB_EXISTS.
absl::Status JobExists(std::string_view job);
// UNAVAILABLE, JOB_IN_CREATION.
absl::Status JobInCreation(std::string_view job);
// RESOURCE_EXHAUSTED, TOO_MANY_JOBS.
absl::Status TooManyJobs(int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_JOBS.
absl::Status TooManyJobsOfSubmitter(std::string_view submitter, int64_t limit);
// INVALID_ARGUMENT, INVALID_COMMAND.
absl::Status InvalidJobCommand(std::string_view why);
// NOT_FOUND, NODE_NOT_FOUND.
absl::Status NoNodeAttached();
// PERMISSION_DENIED, COMMAND_REFUSED.
absl::Status CommandRefused(std::string_view why);
// PERMISSION_DENIED, NOT_A_DEPLOYMENT.
absl::Status NotADeployment(std::string_view job);
// INVALID_ARGUMENT, INVALID_CANCELLATION.
absl::Status InvalidCancellation(std::string_view why);
// PERMISSION_DENIED, COMMAND_REFUSED.
absl::Status CommandOfOtherJob();
// OUT_OF_RANGE, INVALID_POSITION.
absl::Status InvalidPosition(int64_t position);
// FAILED_PRECONDITION, NOT_THE_ROOT.
absl::Status NotTheRoot(std::string_view relay);
// UNAVAILABLE, NO_COMMAND_AUTHORITY.
absl::Status NoCommandAuthority();
// DATA_LOSS, JOB_DAMAGED.
absl::Status JobDamaged(std::string_view path);
// DATA_LOSS, JOB_DAMAGED.
absl::Status JobOfNodeDamaged(std::string_view path);
// NOT_FOUND, JOB_UNFINISHED.
absl::Status JobUnfinished(std::string_view path);
// PERMISSION_DENIED, TARGET_REFUSED.
absl::Status TargetRefused(std::string_view node, std::string_view why);
// FAILED_PRECONDITION, REVOCATIONS_DAMAGED.
absl::Status RevocationsDamaged(std::string_view node);
// PERMISSION_DENIED, OPERATOR_REVOKED.
absl::Status SignerOfCommandRevoked(std::string_view signer);
// FAILED_PRECONDITION, POLICY_UNUSABLE.
absl::Status PolicyUnusable(std::string_view why);
// INVALID_ARGUMENT, POLICY_UNUSABLE.
absl::Status InvalidPolicy(std::string_view mistakes);
// PERMISSION_DENIED, POLICY_REFUSED.
absl::Status PolicyRefused(std::string_view why);
// PERMISSION_DENIED, POLICY_REFUSED.
absl::Status ContainerNotAdmitted(std::string_view why, std::string_view place, std::string_view line);
// PERMISSION_DENIED, POLICY_REFUSED.
absl::Status PluginNotAdmitted(std::string_view why);
// PERMISSION_DENIED, POLICY_REFUSED.
absl::Status ModuleNotAdmitted(std::string_view file, std::string_view module);
// PERMISSION_DENIED, POLICY_REFUSED.
absl::Status PolicyNamesUser(std::string_view user);
// PERMISSION_DENIED, USER_NOT_POSSIBLE.
absl::Status UserNotPossible(std::string_view user);
// INVALID_ARGUMENT, JOB_FOLDER_DAMAGED.
absl::Status JobFolderDamaged(std::string_view folder);
// DATA_LOSS, JOB_DAMAGED.
absl::Status ProcessMarkDamaged();
// DATA_LOSS, JOB_DAMAGED.
absl::Status ContainerMarkDamaged();
// DATA_LOSS, JOURNAL_DAMAGED.
absl::Status JobRecordsDamaged(std::string_view job);
// INVALID_ARGUMENT, INVALID_JOB_RECORD.
absl::Status InvalidJobRecord(std::string_view why);
// UNAUTHENTICATED, SIGNATURE_INVALID.
absl::Status FinalNotSigned(std::string_view why);
// DATA_LOSS, AGENT_DIED.
absl::Status AgentDied();

// Returns the next step after an outcome with this reason or of this name; empty if it has none.
std::string_view OutcomeNextStep(std::string_view reason);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_JOBS_H_
