// The workspace of a deployment: its version at the start, its deletion, and a refused version.
#ifndef MUSTER_CLI_OUTPUT_DEPLOYMENT_WORKSPACE_H_
#define MUSTER_CLI_OUTPUT_DEPLOYMENT_WORKSPACE_H_

#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "muster/v1/deployments.pb.h"

namespace muster::cli {

// Adds rows with the workspace, its deletion, and a refused version; none without a workspace.
void AddWorkspaceOf(const v1::Deployment& deployment, Table* table);

// Return null without a workspace, or without a deletion.
Json WorkspaceOfJson(const v1::Deployment& deployment);
Json WorkspaceDeletionJson(const v1::Deployment& deployment);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_DEPLOYMENT_WORKSPACE_H_
