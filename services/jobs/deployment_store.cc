#include "services/jobs/deployment_store.h"

#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/templates.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/built_version.h"
#include "services/jobs/conformance_store.h"
#include "services/jobs/content_rows.h"
#include "services/jobs/deployment_audit.h"
#include "services/jobs/deployment_limits.h"
#include "services/jobs/deployment_node.h"
#include "services/jobs/deployment_rows.h"
#include "services/jobs/page_size.h"
#include "services/jobs/unsettled_deployments.h"
#include "services/jobs/workspace_rows.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

constexpr int kMaxSilentNamed = 10;

int64_t CountSucceeded(Connection& db, int64_t id) {
  Rows rows = db.Query("SELECT total(succeeded) FROM deployment_nodes WHERE deployment = ?", id);
  return rows.Next() ? rows.Int() : 0;
}

// Its command was not sent, and will not run.
void SetCancelled(absl::Time time, v1::Deployment* message) {
  message->set_state(v1::DEPLOYMENT_STATE_CANCELLED);
  message->set_never_sent(true);
  message->clear_problem();
  ToProto(time, message->mutable_end_time());
}

void MarkEnded(Connection& db, int64_t id, const v1::Deployment& message) {
  db.Run("UPDATE deployments SET ended = 1, unsettled = max(unsettled, 0) WHERE id = ?", id);
  SettleWorkspace(db, id, message);
}

}  // namespace

absl::StatusOr<DeploymentStore::Created> DeploymentStore::Create(
    const v1::Deployment& message, const v1::CreateDeploymentRequest& request, CheckSource check,
    const std::string& vouched_by) {
  const std::string bytes = Serialised(request);
  const std::string digest = DigestBytes(Sha256::Of(bytes));
  Created created;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) -> absl::Status {
    {
      Rows rows = db.Query(
          "SELECT message, request_sha256 FROM deployments WHERE deployment = ? OR job = ? "
          "ORDER BY deployment != ?",
          message.deployment(), message.job(), message.deployment());
      if (rows.Next()) {
        created = {Parsed<v1::Deployment>(rows.Text()), false};
        if (rows.Text() == digest) return absl::OkStatus();
        const std::string& stored = created.message.deployment();
        return stored == message.deployment()
                   ? errors::DeploymentExists(stored)
                   : errors::DeploymentOfJobExists(message.job(), stored);
      }
    }
    const std::string& source =
        message.retry_of().empty() ? message.destroys() : message.retry_of();
    if (!source.empty()) {
      const auto found = ReadSource(db, source);
      if (!found) return db.failed() ? absl::OkStatus() : errors::DeploymentNotFound(source);
      RETURN_IF_ERROR(check(*found));
    }
    RETURN_IF_ERROR(MakeRoomForDeployment(db, message.created_by(), limits_));
    created = {message, true};
    db.Run(
        "INSERT INTO deployments (deployment, job, created_by, ended, message, request, "
        "request_sha256, position, attempted, retry_of, destroys) "
        "VALUES (?, ?, ?, 0, ?, ?, ?, 0, 0, ?, ?)",
        message.deployment(), message.job(), message.created_by(), Blob{Serialised(message)},
        Blob{bytes}, Blob{digest}, message.retry_of(), message.destroys());
    const int64_t id = db.last_id();
    if (!source.empty()) MarkSource(db, message, request);
    if (message.has_workspace()) {
      RETURN_IF_ERROR(
          AcquireWorkspace(db, message, request.nodes(0), FromProto(message.create_time())));
    }
    RETURN_IF_ERROR(AddContentsOf(db, id, request));
    AddCreationRecord(db, message, request, vouched_by);
    return absl::OkStatus();
  }));
  return created;
}

absl::StatusOr<v1::Deployment> DeploymentStore::Get(const std::string& deployment) {
  std::optional<v1::Deployment> found;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    Rows rows = db.Query("SELECT message FROM deployments WHERE deployment = ?", deployment);
    if (!rows.Next()) return absl::OkStatus();
    found = Parsed<v1::Deployment>(rows.Text());
    AddRelated(db, &*found);
    return absl::OkStatus();
  }));
  if (!found) return errors::DeploymentNotFound(deployment);
  return *std::move(found);
}

absl::StatusOr<DeploymentSource> DeploymentStore::GetSource(const std::string& deployment) {
  std::optional<DeploymentSource> found;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    found = ReadSource(db, deployment);
    return absl::OkStatus();
  }));
  if (!found) return errors::DeploymentNotFound(deployment);
  return *std::move(found);
}

absl::Status DeploymentStore::AddNodes(std::string_view token, size_t limit, size_t max_bytes,
                                       v1::Deployment* message) {
  return database_.Read([&](Connection& db) {
    Rows rows = db.Query(
        "SELECT n.message FROM deployment_nodes n JOIN deployments d ON d.id = n.deployment "
        "WHERE d.deployment = ? AND n.node > ? ORDER BY n.node LIMIT ?",
        message->deployment(), token, limit + 1);
    size_t bytes = 0;
    while (rows.Next()) {
      const std::string text = rows.Text();
      bytes += text.size();
      const auto count = static_cast<size_t>(message->nodes_size());
      if (count == limit || (count > 0 && bytes > max_bytes)) {
        message->set_next_page_token(message->nodes(message->nodes_size() - 1).node());
        break;
      }
      v1::DeploymentNode& node = *message->add_nodes();
      node = Parsed<v1::DeploymentNode>(text);
      if (!node.final().records_verified()) {  // they may be of a relay
        node.clear_outputs();
        node.clear_workspace();
      }
    }
    return absl::OkStatus();
  });
}

absl::Status DeploymentStore::AddSilentNodes(v1::Deployment* message) {
  return database_.Read([&](Connection& db) {
    std::set<std::string> silent;
    Rows rows =
        db.Query("SELECT request FROM deployments WHERE deployment = ?", message->deployment());
    if (rows.Next()) {
      const auto request = Parsed<v1::CreateDeploymentRequest>(rows.Text());
      silent.insert(request.nodes().begin(), request.nodes().end());
    }
    Rows heard = db.Query(
        "SELECT n.node FROM deployment_nodes n JOIN deployments d ON d.id = n.deployment "
        "WHERE d.deployment = ?",
        message->deployment());
    while (heard.Next()) silent.erase(heard.Text());
    for (const std::string& node : silent | std::views::take(kMaxSilentNamed)) {
      message->add_silent_nodes(node);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<v1::Deployment>> DeploymentStore::List(std::string_view token,
                                                                  size_t limit, std::string* next) {
  int64_t before = INT64_MAX;
  if (!token.empty() && (!absl::SimpleAtoi(ToAbsl(token), &before) || before <= 0)) {
    return errors::InvalidPageToken();
  }
  std::vector<v1::Deployment> page;
  next->clear();
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    Rows rows =
        db.Query("SELECT id, message FROM deployments WHERE id < ? ORDER BY id DESC LIMIT ?",
                 before, limit + 1);
    int64_t last = 0;
    size_t bytes = 0;
    while (rows.Next()) {
      const int64_t id = rows.Int();
      const std::string text = rows.Text();
      bytes += text.size();
      if (page.size() == limit || (!page.empty() && bytes > kMaxPageBytes)) {
        *next = absl::StrCat(last);
        break;
      }
      last = id;
      page.push_back(Parsed<v1::Deployment>(text));
    }
    return absl::OkStatus();
  }));
  return page;
}

absl::StatusOr<std::vector<DeploymentOfCreator>> DeploymentStore::ListOpen() {
  std::vector<DeploymentOfCreator> open;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    Rows rows = db.Query(
        "SELECT deployment, created_by, cancelled, id FROM deployments WHERE ended = 0 UNION ALL "
        "SELECT deployment, created_by, cancelled, id FROM deployments "
        "WHERE unsettled != 0 AND unsettled < 0 ORDER BY id");
    while (rows.Next()) {
      DeploymentOfCreator& one = open.emplace_back();
      one.deployment = rows.Text();
      one.creator = rows.Text();
      one.cancelled = rows.Int() != 0;
    }
    return absl::OkStatus();
  }));
  return open;
}

absl::StatusOr<OpenDeployment> DeploymentStore::GetOpen(const std::string& deployment) {
  std::optional<OpenDeployment> found;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    Rows rows = db.Query(
        "SELECT message, request, position, attempted FROM deployments "
        "WHERE deployment = ? AND (ended = 0 OR unsettled < 0)",
        deployment);
    if (!rows.Next()) return absl::OkStatus();
    found.emplace();
    found->message = Parsed<v1::Deployment>(rows.Text());
    found->request = Parsed<v1::CreateDeploymentRequest>(rows.Text());
    found->position = rows.Int();
    found->attempted = rows.Int() != 0;
    return absl::OkStatus();
  }));
  if (!found) return errors::DeploymentNotFound(deployment);
  return *std::move(found);
}

absl::StatusOr<v1::Deployment> DeploymentStore::RequestCancel(const std::string& deployment,
                                                              const ChangeOrigin& by,
                                                              absl::Time time) {
  v1::Deployment message;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) -> absl::Status {
    int64_t id = 0;
    bool has_ended = false;
    bool attempted = false;
    {
      Rows rows = db.Query(
          "SELECT id, message, ended, attempted FROM deployments WHERE deployment = ?", deployment);
      if (!rows.Next())
        return db.failed() ? absl::OkStatus() : errors::DeploymentNotFound(deployment);
      id = rows.Int();
      message = Parsed<v1::Deployment>(rows.Text());
      has_ended = rows.Int() != 0;
      attempted = rows.Int() != 0;
    }
    if (has_ended || !message.cancel_requested_by().empty()) return absl::OkStatus();
    message.set_cancel_requested_by(by.actor);
    AddAuditRecord(db, v1::AUDIT_KIND_DEPLOYMENT, by, deployment, "cancelled", "", time);
    if (!attempted) SetCancelled(time, &message);
    db.Run("UPDATE deployments SET message = ?, cancelled = 1 WHERE id = ?",
           Blob{Serialised(message)}, id);
    if (!attempted) MarkEnded(db, id, message);
    return absl::OkStatus();
  }));
  return message;
}

// Reads the message, changes and stores it. Nothing changes a deployment that has ended.
absl::Status DeploymentStore::Change(
    const std::string& deployment,
    absl::FunctionRef<void(Connection& db, int64_t id, v1::Deployment* message)> change,
    bool ends) {
  return database_.Write([&](Connection& db) -> absl::Status {
    int64_t id = 0;
    v1::Deployment message;
    {
      Rows rows = db.Query(
          "SELECT id, message FROM deployments "
          "WHERE deployment = ? AND (ended = 0 OR unsettled < 0)",
          deployment);
      if (!rows.Next())
        return db.failed() ? absl::OkStatus() : errors::DeploymentNotFound(deployment);
      id = rows.Int();
      message = Parsed<v1::Deployment>(rows.Text());
    }
    change(db, id, &message);
    db.Run("UPDATE deployments SET message = ? WHERE id = ?", Blob{Serialised(message)}, id);
    if (ends) MarkEnded(db, id, message);
    return absl::OkStatus();
  });
}

absl::Status DeploymentStore::BeginSubmission(const std::string& deployment) {
  return Change(
      deployment,
      [&](Connection& db, int64_t id, v1::Deployment* message) {
        db.Run("UPDATE deployments SET attempted = 1 WHERE id = ?", id);
        message->clear_problem();
      },
      false);
}

absl::Status DeploymentStore::SetProblem(const std::string& deployment,
                                         const std::string& problem) {
  return Change(
      deployment,
      [&](Connection&, int64_t, v1::Deployment* message) {
        if (!message->has_end_time()) message->set_problem(problem);  // not of a reopened one
      },
      false);
}

absl::Status DeploymentStore::AddRecords(const std::string& deployment,
                                         const v1::WatchJobResponse& response,
                                         const ResolvedDeployment* content) {
  return Change(
      deployment,
      [&](Connection& db, int64_t id, v1::Deployment* message) {
        std::map<std::string, v1::DeploymentNode> nodes;
        std::map<std::string, const v1::JobRecord*> ended;
        for (const v1::JobRecord& record : response.records()) {
          if (record.node().empty()) continue;
          auto found = nodes.find(record.node());
          if (found == nodes.end()) {
            found = nodes.emplace(record.node(), ReadNode(db, id, record.node())).first;
          }
          ApplyRecord(record, &found->second);
          if (record.has_final() && content != nullptr) CheckOutputs(*content, &found->second);
          if (record.has_final()) ended[record.node()] = &record;
        }
        for (const auto& [name, node] : nodes) {
          WriteNode(db, id, node);
          // A late report may be older than the stored one.
          const auto end = message->has_end_time() ? ended.end() : ended.find(name);
          if (end != ended.end()) KeepReport(db, *message, node, *end->second);
        }
        db.Run("UPDATE deployments SET position = ? WHERE id = ?", response.position(), id);
        if (!message->has_end_time()) {  // not for late records
          message->set_state(v1::DEPLOYMENT_STATE_RUNNING);
          message->clear_problem();
        }
        message->set_succeeded(CountSucceeded(db, id));
        if (response.has_job()) message->set_targets(response.job().targets());
      },
      false);
}

absl::Status DeploymentStore::EndWithJob(const std::string& deployment, const v1::Job& job) {
  return Change(
      deployment,
      [&](Connection& db, int64_t id, v1::Deployment* message) {
        message->set_targets(job.targets());
        message->set_succeeded(CountSucceeded(db, id));
        *message->mutable_end_time() = job.end_time();
        if (job.has_late_time()) *message->mutable_late_time() = job.late_time();
        message->clear_problem();
        SetUnsettledAtEnd(db, id);
        if (job.state() == v1::JOB_STATE_CANCELLED) {
          message->set_state(v1::DEPLOYMENT_STATE_CANCELLED);
        } else if (message->succeeded() == message->targets()) {
          message->set_state(v1::DEPLOYMENT_STATE_SUCCEEDED);
          if (message->has_build()) StoreBuiltVersion(db, id, message);
        } else {
          message->set_state(v1::DEPLOYMENT_STATE_FAILED);
          message->set_problem(absl::StrCat("it succeeded on ", message->succeeded(), " of ",
                                            message->targets(),
                                            message->targets() == 1 ? " node" : " nodes"));
        }
      },
      true);
}

absl::Status DeploymentStore::EndCancelled(const std::string& deployment, absl::Time time) {
  return Change(
      deployment,
      [&](Connection&, int64_t, v1::Deployment* message) { SetCancelled(time, message); }, true);
}

absl::Status DeploymentStore::Fail(const std::string& deployment, const std::string& problem,
                                   bool never_sent, absl::Time time) {
  return Change(
      deployment,
      [&](Connection&, int64_t, v1::Deployment* message) {
        if (message->has_end_time()) return;  // it has ended, and its job was removed since
        message->set_state(v1::DEPLOYMENT_STATE_FAILED);
        message->set_problem(problem);
        message->set_never_sent(never_sent);
        ToProto(time, message->mutable_end_time());
      },
      true);
}

}  // namespace muster
