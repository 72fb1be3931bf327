// The content of a deployment, before an operator signs it.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_PLAN_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_PLAN_H_

#include <google/protobuf/repeated_field.h>

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/deployments.pb.h"
#include "services/common/templates/parameters.h"
#include "services/jobs/document_store.h"
#include "services/jobs/secret_provider.h"
#include "services/jobs/template_files.h"
#include "services/jobs/workspace_store.h"

namespace muster {

// Finds the documents, the versions of the secrets and that of the workspace, and resolves the
// parameters. INVALID_ARGUMENT (INVALID_REFERENCE, INVALID_PARAMETERS, INVALID_SECRETS), NOT_FOUND
// (TYPE_NOT_FOUND, TEMPLATE_NOT_FOUND, SECRET_NOT_FOUND); those of WorkspaceStore::Newest, and of a
// Vault (jobs/secret_sources.h). Waits for the disk, and for the Vault of such secrets.
absl::StatusOr<v1::DeploymentPlan> PlanDeployment(DocumentStore& documents, TemplateFiles& files,
                                                  SecretProvider& secrets,
                                                  WorkspaceStore& workspaces,
                                                  const v1::PlanDeploymentRequest& request);

// Returns the deployment of a request, pending. Checks that `caller` (a URI) signed the command,
// that its documents are stored versions, and its parameters. Does not verify the signature.
// Errors: CreateDeployment of deployments.proto. Waits for the disk.
absl::StatusOr<v1::Deployment> ReadDeployment(DocumentStore& documents,
                                              const v1::CreateDeploymentRequest& request,
                                              const std::string& caller, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_PLAN_H_
