#include "services/jobs/workspace_rows.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utc_text.h"
#include "services/common/errors/workspaces.h"
#include "services/jobs/deployment_node.h"
#include "services/jobs/deployment_rows.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

#define WORKSPACE_VERSION_COLUMNS                                                              \
  "version, upload, sha256, size, deployment, job, node, created_at, omitted, restored_from, " \
  "restored_by"

WorkspaceVersionRow NextVersion(Rows& rows) {
  WorkspaceVersionRow row;
  row.version = rows.Int();
  row.upload = rows.Text();
  row.sha256 = rows.Text();
  row.size = rows.Int();
  row.deployment = rows.Text();
  row.job = rows.Text();
  row.node = rows.Text();
  row.created_at = absl::FromUnixMicros(rows.Int());
  row.omitted = rows.Int();
  row.restored_from = rows.Int();
  row.restored_by = rows.Text();
  return row;
}

WorkspaceUploadRow NextUpload(Rows& rows) {
  WorkspaceUploadRow row;
  row.name = rows.Text();
  row.upload = rows.Text();
  row.job = rows.Text();
  row.sha256 = rows.Text();
  row.size = rows.Int();
  return row;
}

std::string OutcomeWord(v1::JobOutcome outcome) {
  constexpr std::string_view kPrefix = "JOB_OUTCOME_";
  return absl::AsciiStrToLower(v1::JobOutcome_Name(outcome).substr(kPrefix.size()));
}

// The node reports a start before it creates an outcome of a started container.
bool NeverStarted(const v1::Deployment& deployment, const v1::DeploymentNode& node) {
  if (deployment.never_sent()) return true;
  if (!node.has_final()) return false;
  if (AttemptOf(node) == Attempt::kNeverStarted) return true;
  const v1::JobOutcome outcome = node.final().outcome();
  return node.final().records_verified() && !node.has_start_time() &&
         (outcome == v1::JOB_OUTCOME_FAILED || outcome == v1::JOB_OUTCOME_TIMED_OUT);
}

std::string WhySuspect(const v1::Deployment& deployment, const v1::DeploymentNode& node) {
  if (!node.has_final()) {
    return absl::StrCat("there is no outcome of its node", deployment.problem().empty() ? "" : ": ",
                        deployment.problem());
  }
  const v1::JobRecord::Final& final = node.final();
  if (!final.records_verified() && !final.signature().signature().empty()) {
    return "the records of its node are not those that the node signed";
  }
  return absl::StrCat("its outcome is \"",
                      absl::StrReplaceAll(OutcomeWord(final.outcome()), {{"_", " "}}), "\"",
                      final.reason().empty() ? "" : ", ", final.reason(),
                      final.detail().empty() ? "" : ": ", final.detail());
}

void SetState(Connection& db, const std::string& name, v1::WorkspaceState state,
              const std::string& problem) {
  db.Run("UPDATE workspaces SET state = ?, problem = ? WHERE name = ?", static_cast<int>(state),
         problem, name);
}

}  // namespace

std::optional<WorkspaceRow> ReadWorkspace(Connection& db, const std::string& name) {
  Rows rows = db.Query(
      "SELECT name, data_key, latest, state, deployment, job, node, since, problem "
      "FROM workspaces WHERE name = ?",
      name);
  if (!rows.Next()) return std::nullopt;
  WorkspaceRow row;
  row.name = rows.Text();
  row.data_key = rows.Text();
  row.latest = rows.Int();
  row.state = rows.Enum<v1::WorkspaceState>();
  row.deployment = rows.Text();
  row.job = rows.Text();
  row.node = rows.Text();
  row.since = absl::FromUnixMicros(rows.Int());
  row.problem = rows.Text();
  return row;
}

std::vector<std::string> ReadWorkspaceNames(Connection& db, const std::string& token,
                                            size_t limit) {
  std::vector<std::string> names;
  Rows rows =
      db.Query("SELECT name FROM workspaces WHERE name > ? ORDER BY name LIMIT ?", token, limit);
  while (rows.Next()) names.push_back(rows.Text());
  return names;
}

void SetDataKey(Connection& db, const std::string& name, const std::string& wrapped) {
  db.Run("UPDATE workspaces SET data_key = ? WHERE name = ?", Blob{wrapped}, name);
}

std::optional<WorkspaceVersionRow> ReadWorkspaceVersion(Connection& db, const std::string& name,
                                                        int64_t version) {
  Rows rows = db.Query("SELECT " WORKSPACE_VERSION_COLUMNS
                       " FROM workspace_versions WHERE name = ? AND version = ?",
                       name, version);
  if (!rows.Next()) return std::nullopt;
  return NextVersion(rows);
}

std::vector<WorkspaceVersionRow> ReadWorkspaceVersions(Connection& db, const std::string& name) {
  std::vector<WorkspaceVersionRow> versions;
  Rows rows = db.Query("SELECT " WORKSPACE_VERSION_COLUMNS
                       " FROM workspace_versions WHERE name = ? ORDER BY version DESC",
                       name);
  while (rows.Next()) versions.push_back(NextVersion(rows));
  return versions;
}

std::optional<WorkspaceVersionRow> ReadVersionOfJob(Connection& db, const std::string& name,
                                                    const std::string& job,
                                                    const std::string& sha256) {
  Rows rows = db.Query("SELECT " WORKSPACE_VERSION_COLUMNS
                       " FROM workspace_versions WHERE name = ? AND job = ? AND sha256 = ?",
                       name, job, Blob{sha256});
  if (!rows.Next()) return std::nullopt;
  return NextVersion(rows);
}

void AddWorkspaceVersion(Connection& db, const std::string& name, const WorkspaceVersionRow& row) {
  db.Run("INSERT INTO workspace_versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", name,
         row.version, row.upload, Blob{row.sha256}, row.size, row.deployment, row.job, row.node,
         absl::ToUnixMicros(row.created_at), row.omitted, row.restored_from, row.restored_by);
  db.Run("UPDATE workspaces SET latest = ? WHERE name = ?", row.version, name);
  db.Run("DELETE FROM workspace_versions WHERE name = ? AND version <= ?", name,
         row.version - kMaxWorkspaceVersions);
}

std::optional<WorkspaceUploadRow> ReadWorkspaceUpload(Connection& db, const std::string& name) {
  Rows rows = db.Query(
      "SELECT name, upload, job, sha256, size FROM workspace_uploads WHERE name = ?", name);
  if (!rows.Next()) return std::nullopt;
  return NextUpload(rows);
}

std::vector<WorkspaceUploadRow> ReadWorkspaceUploads(Connection& db) {
  std::vector<WorkspaceUploadRow> uploads;
  Rows rows = db.Query("SELECT name, upload, job, sha256, size FROM workspace_uploads");
  while (rows.Next()) uploads.push_back(NextUpload(rows));
  return uploads;
}

void WriteWorkspaceUpload(Connection& db, const WorkspaceUploadRow& row) {
  db.Run("INSERT OR REPLACE INTO workspace_uploads VALUES (?, ?, ?, ?, ?)", row.name, row.upload,
         row.job, Blob{row.sha256}, row.size);
}

void DeleteWorkspaceUpload(Connection& db, const WorkspaceUploadRow& row) {
  db.Run("DELETE FROM workspace_uploads WHERE name = ? AND upload = ?", row.name, row.upload);
}

std::vector<std::string> ReadWorkspaceBlobs(Connection& db) {
  std::vector<std::string> blobs;
  Rows rows = db.Query("SELECT DISTINCT upload FROM workspace_versions");
  while (rows.Next()) blobs.push_back(rows.Text());
  return blobs;
}

int64_t ReadWorkspaceUsage(Connection& db) {
  Rows rows = db.Query(
      "SELECT total(size) FROM (SELECT upload, size FROM workspace_versions "
      "UNION SELECT upload, size FROM workspace_uploads)");
  return rows.Next() ? rows.Int() : 0;
}

void ReleaseWorkspace(Connection& db, const std::string& name) {
  db.Run(
      "UPDATE workspaces SET state = ?, deployment = '', job = '', node = '', since = 0, "
      "problem = '' WHERE name = ?",
      static_cast<int>(v1::WORKSPACE_STATE_FREE), name);
  db.Run("DELETE FROM workspaces WHERE name = ? AND latest = 0", name);
}

absl::Status CheckFree(const WorkspaceRow& row) {
  switch (row.state) {
    case v1::WORKSPACE_STATE_FREE:
      return absl::OkStatus();
    case v1::WORKSPACE_STATE_SUSPECT:
      return errors::WorkspaceSuspect(row.name, row.deployment, row.problem);
    default:
      return errors::WorkspaceInUse(row.name, row.deployment, UtcText(row.since));
  }
}

absl::Status ReadNewestVersion(Connection& db, const std::string& name,
                               v1::Command::WorkspaceReference* reference) {
  reference->Clear();
  reference->set_workspace(name);
  const auto row = ReadWorkspace(db, name);
  if (!row) return absl::OkStatus();
  RETURN_IF_ERROR(CheckFree(*row));
  const auto newest = ReadWorkspaceVersion(db, name, row->latest);
  if (!newest) return absl::OkStatus();
  reference->set_version(newest->version);
  reference->set_sha256(newest->sha256);
  reference->set_size(newest->size);
  return absl::OkStatus();
}

absl::Status AcquireWorkspace(Connection& db, const v1::Deployment& deployment,
                              const std::string& node, absl::Time now) {
  if (!deployment.has_workspace()) return absl::OkStatus();
  const v1::Command::WorkspaceReference& named = deployment.workspace();
  const std::string& name = named.workspace();
  const bool exists = ReadWorkspace(db, name).has_value();
  v1::Command::WorkspaceReference newest;
  RETURN_IF_ERROR(ReadNewestVersion(db, name, &newest));
  if (newest.version() != named.version() || newest.sha256() != named.sha256() ||
      newest.size() != named.size()) {
    return errors::WorkspaceChanged(name, named.version(), newest.version());
  }
  if (!exists) {
    Rows rows = db.Query("SELECT count(*) FROM workspaces");
    if (rows.Next() && rows.Int() >= kMaxWorkspaces) {
      return errors::TooManyWorkspaces(kMaxWorkspaces);
    }
  }
  db.Run("INSERT OR IGNORE INTO workspaces VALUES (?, x'', 0, 0, '', '', '', 0, '')", name);
  db.Run(
      "UPDATE workspaces SET state = ?, deployment = ?, job = ?, node = ?, since = ?, "
      "problem = '' WHERE name = ?",
      static_cast<int>(v1::WORKSPACE_STATE_IN_USE), deployment.deployment(), deployment.job(), node,
      absl::ToUnixMicros(now), name);
  return absl::OkStatus();
}

void SettleWorkspace(Connection& db, int64_t id, const v1::Deployment& deployment) {
  if (!deployment.has_workspace()) return;
  const v1::Command::WorkspaceReference& named = deployment.workspace();
  const auto row = ReadWorkspace(db, named.workspace());
  if (!row || row->deployment != deployment.deployment()) return;  // it is saved
  const v1::DeploymentNode node = ReadNode(db, id, row->node);
  const v1::JobRecord::Workspace& saved = node.workspace();
  const bool is_signed = node.final().records_verified() && node.has_workspace() &&
                         saved.workspace() == named.workspace() &&
                         saved.version() == named.version();
  if (NeverStarted(deployment, node) || (is_signed && saved.sha256() == named.sha256())) {
    return ReleaseWorkspace(db, row->name);
  }
  if (is_signed) return SetState(db, row->name, v1::WORKSPACE_STATE_SAVING, "");
  SetState(db, row->name, v1::WORKSPACE_STATE_SUSPECT, WhySuspect(deployment, node));
}

}  // namespace muster
