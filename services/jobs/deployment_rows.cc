#include "services/jobs/deployment_rows.h"

#include "services/jobs/deployment_node.h"

namespace muster {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

v1::DeploymentNode ReadNode(Connection& db, int64_t id, const std::string& name) {
  Rows rows =
      db.Query("SELECT message FROM deployment_nodes WHERE deployment = ? AND node = ?", id, name);
  v1::DeploymentNode node;
  if (rows.Next()) node = Parsed<v1::DeploymentNode>(rows.Text());
  node.set_node(name);
  return node;
}

void WriteNode(Connection& db, int64_t id, const v1::DeploymentNode& node) {
  db.Run("INSERT OR REPLACE INTO deployment_nodes VALUES (?, ?, ?, ?)", id, node.node(),
         HasSucceeded(node), Blob{Serialised(node)});
}

}  // namespace muster
