#include "cli/output/deployment_workspace.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/output/format.h"
#include "cli/output/job_view.h"
#include "cli/output/json_view.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {

void AddWorkspaceOf(const v1::Deployment& deployment, Table* table) {
  if (!deployment.has_workspace()) return;
  const v1::Command::WorkspaceReference& workspace = deployment.workspace();
  table->AddRow({"workspace", workspace.version() == 0
                                  ? absl::StrCat(workspace.workspace(), ", empty at its start")
                                  : absl::StrCat(workspace.workspace(), ", at its start version ",
                                                 workspace.version())});
  if (deployment.has_workspace_deletion()) {
    const v1::WorkspaceDeletion& deletion = deployment.workspace_deletion();
    table->AddRow(
        {"", absl::StrCat("deleted ", HumanTime(FromProto(deletion.delete_time()), absl::Now()),
                          " by ", ShortName(deletion.deleted_by()),
                          "; a later workspace of this name is another one")});
  }
  for (const v1::DeploymentNode& node : deployment.nodes()) {
    if (!node.has_workspace_refused_time()) continue;
    table->AddRow(
        {"", absl::StrCat("the version that ", node.node(), " sent was refused ",
                          HumanTime(FromProto(node.workspace_refused_time()), absl::Now()),
                          "; the node keeps it for a day in workspaces-refused")});
  }
}

Json WorkspaceDeletionJson(const v1::Deployment& deployment) {
  if (!deployment.has_workspace_deletion()) return nullptr;
  const v1::WorkspaceDeletion& deletion = deployment.workspace_deletion();
  return {{"deleted_by", deletion.deleted_by()},
          {"delete_time", Rfc3339(FromProto(deletion.delete_time()))}};
}

Json WorkspaceOfJson(const v1::Deployment& deployment) {
  if (!deployment.has_workspace()) return nullptr;
  return {{"workspace", deployment.workspace().workspace()},
          {"version", deployment.workspace().version()}};
}

}  // namespace muster::cli
