// Template types, templates and deployments, for people and for programs.
#ifndef MUSTER_CLI_OUTPUT_DEPLOYMENT_VIEW_H_
#define MUSTER_CLI_OUTPUT_DEPLOYMENT_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output/json_view.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/templates.pb.h"

namespace muster::cli {

// Returns "pending", "running", "succeeded", "failed" or "cancelled".
std::string StateWord(v1::DeploymentState state);

// Returns whether a deployment has ended.
bool HasEnded(const v1::Deployment& deployment);

// Return JSON with the field names of the protos; documents and values as JSON.
Json ToJson(const v1::TemplateType& type);
Json ToJson(const v1::Template& own);
Json ToJson(const v1::Deployment& deployment);
Json ToJson(const v1::DeploymentFile& file);

// Returns the fields that ListDeployments sets.
Json ListedJson(const v1::Deployment& deployment);

// Returns "web@1.4.0", or "shell@1.0.0" for a type that is deployed alone.
std::string SubjectOf(const v1::Deployment& deployment);

// Returns what a retry or a destruction of `content.retry_of` or `content.destroys` runs: its
// content, the operator who signed that first (a URI), the nodes of the plan, and why others are
// left out.
std::string SuccessorTable(const v1::Deployment& content, const std::string& signed_by,
                           const v1::DeploymentPlan& plan, int width);

// Returns the number of nodes without a record.
int64_t WithoutRecord(const v1::Deployment& deployment);

// Returns the state, the parameters with their sources, the outcome of each node, the failed ones
// first, and the next steps. `waiting`: why nodes have not sent a record, or not the last one.
std::string DeploymentTable(const v1::Deployment& deployment,
                            const std::vector<std::string>& waiting, int width);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_DEPLOYMENT_VIEW_H_
