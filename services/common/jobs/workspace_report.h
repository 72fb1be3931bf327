// The report by which a node saves the workspace of a deployment, through relays that cannot change
// it (WorkspaceReport of workspaces.proto).
#ifndef MUSTER_SERVICES_COMMON_JOBS_WORKSPACE_REPORT_H_
#define MUSTER_SERVICES_COMMON_JOBS_WORKSPACE_REPORT_H_

#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/workspaces.pb.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/jobs/signing_files.h"

namespace muster {

// Sets the signature of the report, whose other fields are set.
absl::Status SignWorkspaceReport(const SigningFiles& node_files, std::string_view fleet,
                                 v1::WorkspaceReport* report);

// Verifies that the node of the report signed it, with a certificate of the fleet that is valid
// now. Returns the content of that certificate: the caller checks that it is not revoked.
// PERMISSION_DENIED (WORKSPACE_REFUSED), with the cause; INVALID_ARGUMENT (INVALID_WORKSPACE).
absl::StatusOr<std::shared_ptr<const VerifiedChain>> VerifyWorkspaceReport(
    const v1::WorkspaceReport& report, std::string_view fleet, VerifiedChains& chains);

// Signs the response as the jobs service, if it is the last one: `saved` or `lost` is set.
absl::Status SignWorkspaceAnswer(const SigningFiles& service_files, std::string_view fleet,
                                 const v1::WorkspaceReport& report,
                                 v1::SaveWorkspaceResponse* response);

// Verifies that a jobs service of the fleet signed a last response to this report.
// PERMISSION_DENIED (WORKSPACE_REFUSED), with the cause.
absl::Status VerifyWorkspaceAnswer(const v1::WorkspaceReport& report, std::string_view fleet,
                                   std::span<const Certificate> roots, absl::Time now,
                                   const v1::SaveWorkspaceResponse& response);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_WORKSPACE_REPORT_H_
