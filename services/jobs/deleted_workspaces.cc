#include "services/jobs/deleted_workspaces.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/utc_text.h"
#include "services/common/errors/workspaces.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/deployment_rows.h"

namespace muster {
namespace {

using sqlite::Connection;
using sqlite::Rows;

// A deployment had the first workspace of the name that was deleted after it.
#define DELETION_OF_DEPLOYMENT                                                      \
  "SELECT w.deleted_by, w.deleted_at FROM deployments d JOIN deleted_workspaces w " \
  "ON w.name = ? AND w.last_deployment >= d.id WHERE d."
#define FIRST_DELETION " = ? ORDER BY w.last_deployment LIMIT 1"

std::optional<v1::WorkspaceDeletion> NextDeletion(Rows rows) {
  if (!rows.Next()) return std::nullopt;
  v1::WorkspaceDeletion deletion;
  deletion.set_deleted_by(rows.Text());
  ToProto(absl::FromUnixMicros(rows.Int()), deletion.mutable_delete_time());
  return deletion;
}

}  // namespace

void DeleteWorkspaceRows(Connection& db, const std::string& name, const std::string& by,
                         absl::Time now) {
  db.Run("DELETE FROM workspace_versions WHERE name = ?", name);
  db.Run("DELETE FROM workspaces WHERE name = ?", name);
  db.Run(
      "INSERT OR REPLACE INTO deleted_workspaces "
      "SELECT ?, ifnull(max(id), 0), ?, ? FROM deployments",
      name, by, absl::ToUnixMicros(now));
  db.Run(
      "DELETE FROM deleted_workspaces WHERE (name, last_deployment) IN (SELECT name, "
      "last_deployment FROM deleted_workspaces ORDER BY last_deployment DESC, name LIMIT -1 "
      "OFFSET ?)",
      kMaxDeletedWorkspaces);
}

std::optional<v1::WorkspaceDeletion> FindWorkspaceDeletion(Connection& db, const std::string& name,
                                                           const std::string& deployment) {
  return NextDeletion(
      db.Query(DELETION_OF_DEPLOYMENT "deployment" FIRST_DELETION, name, deployment));
}

std::optional<v1::WorkspaceDeletion> FindWorkspaceDeletionOfJob(Connection& db,
                                                                const std::string& name,
                                                                const std::string& job) {
  return NextDeletion(db.Query(DELETION_OF_DEPLOYMENT "job" FIRST_DELETION, name, job));
}

std::string DeletionText(const v1::WorkspaceDeletion& deletion) {
  return absl::StrCat("deleted by ", deletion.deleted_by(), " at ",
                      UtcText(FromProto(deletion.delete_time())));
}

absl::Status CheckWorkspaceKept(const v1::Deployment& deployment) {
  if (!deployment.has_workspace_deletion()) return absl::OkStatus();
  return errors::WorkspaceDeleted(deployment.workspace().workspace(), deployment.deployment(),
                                  DeletionText(deployment.workspace_deletion()));
}

void MarkWorkspaceRefused(Connection& db, const v1::WorkspaceReport& report, absl::Time now) {
  int64_t id = 0;
  v1::DeploymentNode node;
  {
    Rows rows = db.Query(
        "SELECT d.id, d.message, n.message FROM deployments d JOIN deployment_nodes n "
        "ON n.deployment = d.id WHERE d.job = ? AND n.node = ?",
        report.job(), report.node());
    if (!rows.Next()) return;
    id = rows.Int();
    const auto deployment = Parsed<v1::Deployment>(rows.Text());
    if (deployment.workspace().workspace() != report.workspace().workspace()) return;
    node = Parsed<v1::DeploymentNode>(rows.Text());
  }
  if (node.has_workspace_refused_time()) return;
  ToProto(now, node.mutable_workspace_refused_time());
  WriteNode(db, id, node);
}

}  // namespace muster
