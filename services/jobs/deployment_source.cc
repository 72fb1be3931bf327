#include "services/jobs/deployment_source.h"

#include <google/protobuf/repeated_field.h>

#include <map>
#include <utility>

#include "services/jobs/deleted_workspaces.h"
#include "services/jobs/deployment_rows.h"

namespace muster {
namespace {

using sqlite::Connection;
using sqlite::Rows;

constexpr int kMaxRelated = 100;

// The row of a deployment.
struct Row {
  int64_t id = 0;
  v1::Deployment message;
  std::string request;
};

std::optional<Row> ReadRow(Connection& db, const std::string& deployment) {
  Rows rows =
      db.Query("SELECT id, message, request FROM deployments WHERE deployment = ?", deployment);
  if (!rows.Next()) return std::nullopt;
  Row row;
  row.id = rows.Int();
  row.message = Parsed<v1::Deployment>(rows.Text());
  row.request = rows.Text();
  return row;
}

// Returns the attempt of a deployment on a node.
Attempt AttemptIn(const v1::Deployment& deployment, const v1::DeploymentNode& node) {
  if (!node.has_final() && deployment.never_sent()) return Attempt::kNeverStarted;
  return AttemptOf(node);
}

// Finds the outcomes of destructions. Each is read once.
class Destructions {
 public:
  explicit Destructions(Connection& db) : db_(db) {}

  // Returns kUnknown for a destruction that is not stored any more.
  Attempt AttemptOn(const std::string& deployment, const std::string& node) {
    auto found = rows_.find(deployment);
    if (found == rows_.end()) found = rows_.emplace(deployment, ReadRow(db_, deployment)).first;
    const std::optional<Row>& row = found->second;
    if (!row) return Attempt::kUnknown;
    return AttemptIn(row->message, ReadNode(db_, row->id, node));
  }

 private:
  Connection& db_;
  std::map<std::string, std::optional<Row>> rows_;
};

// Returns the nodes of the request, and those with a record: a deployment for all nodes names none.
std::map<std::string, v1::DeploymentNode> NodesOf(Connection& db, int64_t id,
                                                  const v1::CreateDeploymentRequest& request) {
  std::map<std::string, v1::DeploymentNode> nodes;
  for (const std::string& name : request.nodes()) nodes[name].set_node(name);
  Rows rows = db.Query("SELECT message FROM deployment_nodes WHERE deployment = ?", id);
  while (rows.Next()) {
    auto node = Parsed<v1::DeploymentNode>(rows.Text());
    const std::string name = node.node();
    nodes.insert_or_assign(name, std::move(node));
  }
  return nodes;
}

// Returns all deployments that are connected with this one by retries: those that it retries, and
// the retries of all of these. They run the same content.
std::vector<std::string> FamilyOf(Connection& db, const std::string& deployment) {
  std::vector<std::string> family;
  Rows rows = db.Query(
      "WITH RECURSIVE origins(deployment, retry_of) AS ("
      "  SELECT deployment, retry_of FROM deployments WHERE deployment = ?"
      "  UNION SELECT d.deployment, d.retry_of FROM deployments d"
      "    JOIN origins ON d.deployment = origins.retry_of"
      "), family(deployment) AS ("
      "  SELECT deployment FROM origins"
      "  UNION SELECT d.deployment FROM deployments d JOIN family ON d.retry_of = family.deployment"
      ") SELECT deployment FROM family",
      deployment);
  while (rows.Next()) family.push_back(rows.Text());
  return family;
}

// Sets the successors of the source's family.
void ReadSuccessors(Connection& db, const std::vector<std::string>& family,
                    DeploymentSource* source) {
  int64_t latest = 0;
  for (const std::string& member : family) {
    Rows rows = db.Query(
        "SELECT id, deployment, destroys, ended FROM deployments WHERE retry_of = ? OR destroys = "
        "?",
        member, member);
    while (rows.Next()) {
      const int64_t id = rows.Int();
      const std::string successor = rows.Text();
      if (!rows.Text().empty() && id > latest) {
        latest = id;
        source->destroyed_by = successor;
      }
      if (rows.Int() == 0) source->open_successor = successor;
    }
  }
}

void AddSuccessors(Connection& db, const char* query, const std::string& source,
                   google::protobuf::RepeatedPtrField<v1::RelatedDeployment>* related) {
  Rows rows = db.Query(query, source, kMaxRelated);
  while (rows.Next()) {
    const auto message = Parsed<v1::Deployment>(rows.Text());
    v1::RelatedDeployment& one = *related->Add();
    one.set_deployment(message.deployment());
    one.set_state(message.state());
  }
}

void AddDeletion(Connection& db, v1::Deployment* message) {
  if (!message->has_workspace()) return;
  auto deletion =
      FindWorkspaceDeletion(db, message->workspace().workspace(), message->deployment());
  if (deletion) *message->mutable_workspace_deletion() = *std::move(deletion);
}

}  // namespace

std::optional<DeploymentSource> ReadSource(Connection& db, const std::string& deployment) {
  std::optional<Row> row = ReadRow(db, deployment);
  if (!row) return std::nullopt;
  DeploymentSource source;
  source.message = std::move(row->message);
  source.request = Parsed<v1::CreateDeploymentRequest>(row->request);
  AddDeletion(db, &source.message);
  Destructions destructions(db);
  for (const auto& [name, node] : NodesOf(db, row->id, source.request)) {
    SourceNode& added = source.nodes.emplace_back();
    added.node = name;
    added.attempt = AttemptIn(source.message, node);
    added.retried_by = node.retried_by();
    added.destroyed_by = node.destroyed_by();
    if (!added.destroyed_by.empty()) {
      added.destruction = destructions.AttemptOn(added.destroyed_by, name);
    }
  }
  ReadSuccessors(db, FamilyOf(db, deployment), &source);
  return source;
}

void MarkSource(Connection& db, const v1::Deployment& successor,
                const v1::CreateDeploymentRequest& request) {
  if (!successor.retry_of().empty()) {
    const auto row = ReadRow(db, successor.retry_of());
    if (!row) return;
    for (const std::string& name : request.nodes()) {
      v1::DeploymentNode node = ReadNode(db, row->id, name);
      node.set_retried_by(successor.deployment());
      WriteNode(db, row->id, node);
    }
    return;
  }
  if (successor.destroys().empty()) return;
  for (const std::string& member : FamilyOf(db, successor.destroys())) {
    const auto row = ReadRow(db, member);
    if (!row) continue;
    auto nodes = NodesOf(db, row->id, Parsed<v1::CreateDeploymentRequest>(row->request));
    for (const std::string& name : request.nodes()) {
      const auto found = nodes.find(name);
      if (found == nodes.end()) continue;
      found->second.set_destroyed_by(successor.deployment());
      WriteNode(db, row->id, found->second);
    }
  }
}

void AddRelated(Connection& db, v1::Deployment* message) {
  AddSuccessors(db, "SELECT message FROM deployments WHERE retry_of = ? ORDER BY id LIMIT ?",
                message->deployment(), message->mutable_retries());
  AddSuccessors(db, "SELECT message FROM deployments WHERE destroys = ? ORDER BY id LIMIT ?",
                message->deployment(), message->mutable_destroyed_by());
  AddDeletion(db, message);
}

}  // namespace muster
