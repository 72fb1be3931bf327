// The build of a template, before an operator signs it and after.
#ifndef MUSTER_SERVICES_JOBS_BUILD_PLAN_H_
#define MUSTER_SERVICES_JOBS_BUILD_PLAN_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/jobs/document_store.h"
#include "services/jobs/template_files.h"

namespace muster {

// Finds the document of the type, and the files of the version `build_from` if one is named, and
// checks the build. If the version is stored and was built from the same files, the plan names it,
// and nothing is to be built. Errors: PlanDeployment of deployments.proto. Waits for the disk.
absl::StatusOr<v1::DeploymentPlan> PlanBuild(DocumentStore& documents, TemplateFiles& files,
                                             const v1::PlanDeploymentRequest& request);

// Checks the build of a command as PlanBuild does, and sets what `*deployment` has of it. Waits for
// the disk.
absl::Status ReadBuild(DocumentStore& documents, const v1::Command& command,
                       v1::Deployment* deployment);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_BUILD_PLAN_H_
