#include "services/jobs/unsettled_deployments.h"

#include "muster/v1/deployments.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/jobs/deployment_node.h"
#include "services/jobs/deployment_rows.h"

namespace muster {
namespace {

using sqlite::Connection;
using sqlite::Rows;

bool AnyMayReportLater(Connection& db, int64_t id) {
  Rows rows =
      db.Query("SELECT message FROM deployment_nodes WHERE deployment = ? AND succeeded = 0", id);
  while (rows.Next()) {
    if (MayReportLater(Parsed<v1::DeploymentNode>(rows.Text()))) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<UnsettledDeployment>> UnsettledDeployments::List(int64_t id,
                                                                            size_t limit) {
  std::vector<UnsettledDeployment> list;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    Rows rows = db.Query(
        "SELECT id, deployment, created_by, cancelled, job, message FROM deployments "
        "WHERE unsettled != 0 AND unsettled > 0 AND ended = 1 AND id > ? "
        "ORDER BY id LIMIT ?",
        id, limit);
    while (rows.Next()) {
      UnsettledDeployment& one = list.emplace_back();
      one.id = rows.Int();
      one.deployment = rows.Text();
      one.creator = rows.Text();
      one.cancelled = rows.Int() != 0;
      one.job = rows.Text();
      one.late_time = Parsed<v1::Deployment>(rows.Text()).late_time().SerializeAsString();
    }
    return absl::OkStatus();
  }));
  return list;
}

absl::Status UnsettledDeployments::Set(const std::string& deployment, int64_t value) {
  return database_.Write([&](Connection& db) -> absl::Status {
    int64_t id = 0;
    {
      Rows rows = db.Query(
          "SELECT id FROM deployments WHERE deployment = ? AND ended = 1 AND unsettled > 0",
          deployment);
      if (!rows.Next())
        return db.failed() ? absl::OkStatus() : errors::DeploymentNotFound(deployment);
      id = rows.Int();
    }
    db.Run("UPDATE deployments SET unsettled = ? WHERE id = ?", value, id);
    return absl::OkStatus();
  });
}

absl::Status UnsettledDeployments::Reopen(const std::string& deployment) {
  return Set(deployment, -1);
}

absl::Status UnsettledDeployments::Settle(const std::string& deployment) {
  return Set(deployment, 0);
}

void SetUnsettledAtEnd(Connection& db, int64_t id) {
  db.Run("UPDATE deployments SET unsettled = ? WHERE id = ?", AnyMayReportLater(db, id) ? 1 : 0,
         id);
}

}  // namespace muster
