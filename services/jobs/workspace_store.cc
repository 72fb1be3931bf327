#include "services/jobs/workspace_store.h"

#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/workspaces.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/workspaces.h"
#include "services/jobs/audit_outbox.h"
#include "services/jobs/deleted_workspaces.h"
#include "services/jobs/workspace_rows.h"

namespace muster {
namespace {

using sqlite::Connection;

absl::Status NotFound(const std::string& workspace) {
  return errors::WorkspaceNotFound(absl::Utf8SafeCEscape(workspace.substr(0, 300)));
}

v1::Workspace Describe(const WorkspaceRow& row) {
  v1::Workspace workspace;
  workspace.set_workspace(row.name);
  workspace.set_state(row.state);
  workspace.set_latest(row.latest);
  if (row.state == v1::WORKSPACE_STATE_FREE) return workspace;
  workspace.set_deployment(row.deployment);
  workspace.set_node(row.node);
  ToProto(row.since, workspace.mutable_since());
  workspace.set_problem(row.problem);
  return workspace;
}

void Describe(const WorkspaceVersionRow& row, v1::Workspace::Version* version) {
  version->set_version(row.version);
  version->set_sha256(row.sha256);
  version->set_size(row.size);
  version->set_deployment(row.deployment);
  version->set_node(row.node);
  ToProto(row.created_at, version->mutable_create_time());
  version->set_omitted(row.omitted);
  version->set_restored_from(row.restored_from);
  version->set_restored_by(row.restored_by);
}

v1::Workspace DescribeWithVersions(Connection& db, const WorkspaceRow& row) {
  v1::Workspace workspace = Describe(row);
  std::set<std::string> archives;  // a restored version has that of another one
  int64_t size = 0;
  for (const WorkspaceVersionRow& version : ReadWorkspaceVersions(db, row.name)) {
    Describe(version, workspace.add_versions());
    if (archives.insert(version.upload).second) size += version.size;
  }
  workspace.set_size(size);
  return workspace;
}

// FAILED_PRECONDITION (WORKSPACE_IN_USE) if another deployment than the named one has the
// workspace; an empty one names any.
absl::Status CheckNamedHolder(const WorkspaceRow& row, const std::string& deployment) {
  if (deployment.empty() || row.state == v1::WORKSPACE_STATE_FREE || deployment == row.deployment) {
    return absl::OkStatus();
  }
  return errors::WorkspaceOfOther(row.name, row.deployment,
                                  absl::Utf8SafeCEscape(deployment.substr(0, 300)));
}

// `deployment`: as in DeleteWorkspaceRequest.
absl::Status CheckDeletable(const WorkspaceRow& row, const std::string& deployment) {
  RETURN_IF_ERROR(CheckNamedHolder(row, deployment));
  switch (row.state) {
    case v1::WORKSPACE_STATE_SAVING:
      if (!deployment.empty()) return absl::OkStatus();
      return errors::SavingWorkspaceNotDeleted(row.name, row.deployment, row.node);
    case v1::WORKSPACE_STATE_SUSPECT:
      if (!deployment.empty()) return absl::OkStatus();
      return errors::SuspectWorkspaceNotDeleted(row.name, row.deployment, row.problem);
    default:
      return CheckFree(row);
  }
}

// Returns "2 versions, the newest is 5 with SHA-256 ...; taken from deployment ... on node ...".
std::string DeletedText(const v1::Workspace& workspace) {
  std::string text = "no versions";
  if (workspace.versions_size() > 0) {
    text = absl::StrCat(workspace.versions_size(),
                        workspace.versions_size() == 1 ? " version" : " versions",
                        ", the newest is ", workspace.latest(), " with SHA-256 ",
                        absl::BytesToHexString(workspace.versions(0).sha256()));
  }
  if (!workspace.deployment().empty()) {
    absl::StrAppend(&text, "; taken from deployment ", workspace.deployment(), " on node ",
                    workspace.node());
  }
  return text;
}

}  // namespace

absl::StatusOr<v1::Command::WorkspaceReference> WorkspaceStore::Newest(
    const std::string& workspace) {
  v1::Command::WorkspaceReference newest;
  newest.set_workspace(workspace);
  RETURN_IF_ERROR(CheckWorkspace(newest));
  RETURN_IF_ERROR(
      database_.Read([&](Connection& db) { return ReadNewestVersion(db, workspace, &newest); }));
  RETURN_IF_ERROR(CheckQuota());
  return newest;
}

absl::Status WorkspaceStore::CheckQuota() {
  return Usage() < quota_ ? absl::OkStatus() : errors::WorkspaceQuota(quota_);
}

absl::StatusOr<std::vector<v1::Workspace>> WorkspaceStore::List(const std::string& token,
                                                                size_t limit, std::string* next) {
  if (!token.empty() && !ValidateName("workspace", token).ok()) return errors::InvalidPageToken();
  std::vector<v1::Workspace> page;
  next->clear();
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    std::vector<std::string> names = ReadWorkspaceNames(db, token, limit + 1);
    if (names.size() > limit) {
      names.resize(limit);
      *next = names.back();
    }
    for (const std::string& name : names) {
      if (const auto row = ReadWorkspace(db, name)) page.push_back(Describe(*row));
    }
    return absl::OkStatus();
  }));
  return page;
}

absl::StatusOr<v1::Workspace> WorkspaceStore::Get(const std::string& workspace) {
  v1::Workspace found;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) -> absl::Status {
    const auto row = ReadWorkspace(db, workspace);
    if (!row) return db.failed() ? absl::OkStatus() : NotFound(workspace);
    found = DescribeWithVersions(db, *row);
    return absl::OkStatus();
  }));
  return found;
}

absl::Status WorkspaceStore::Restore(const std::string& workspace, int64_t version,
                                     const ChangeOrigin& by, absl::Time now) {
  return database_.Write([&](Connection& db) -> absl::Status {
    const auto row = ReadWorkspace(db, workspace);
    if (!row) return db.failed() ? absl::OkStatus() : NotFound(workspace);
    RETURN_IF_ERROR(CheckFree(*row));
    auto restored = ReadWorkspaceVersion(db, workspace, version);
    const auto newest = ReadWorkspaceVersion(db, workspace, row->latest);
    if (!restored || !newest) {
      return db.failed() ? absl::OkStatus() : errors::WorkspaceVersionNotFound(workspace, version);
    }
    if (restored->sha256 == newest->sha256) return absl::OkStatus();
    restored->version = row->latest + 1;
    restored->created_at = now;
    restored->restored_from = version;
    restored->restored_by = by.actor;
    restored->job.clear();  // the node has not saved this version
    AddWorkspaceVersion(db, workspace, *restored);
    AddAuditRecord(db, v1::AUDIT_KIND_WORKSPACE, by, workspace, "restored",
                   absl::StrCat("version ", version, ", as version ", restored->version), now);
    return absl::OkStatus();
  });
}

absl::Status WorkspaceStore::Unlock(const std::string& workspace, const std::string& deployment,
                                    const ChangeOrigin& by, absl::Time now) {
  return database_.Write([&](Connection& db) -> absl::Status {
    const auto row = ReadWorkspace(db, workspace);
    if (!row) return db.failed() ? absl::OkStatus() : NotFound(workspace);
    if (row->state == v1::WORKSPACE_STATE_FREE) return absl::OkStatus();
    RETURN_IF_ERROR(CheckNamedHolder(*row, deployment));
    if (row->state == v1::WORKSPACE_STATE_IN_USE) return CheckFree(*row);
    ReleaseWorkspace(db, workspace);
    AddAuditRecord(db, v1::AUDIT_KIND_WORKSPACE, by, workspace, "unlocked",
                   absl::StrCat("taken from deployment ", row->deployment, " on node ", row->node),
                   now);
    return absl::OkStatus();
  });
}

absl::StatusOr<v1::Workspace> WorkspaceStore::Delete(const std::string& workspace,
                                                     const std::string& deployment,
                                                     const ChangeOrigin& by, absl::Time now) {
  v1::Workspace deleted;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) -> absl::Status {
    const auto row = ReadWorkspace(db, workspace);
    if (!row) return db.failed() ? absl::OkStatus() : NotFound(workspace);
    RETURN_IF_ERROR(CheckDeletable(*row, deployment));
    deleted = DescribeWithVersions(db, *row);
    DeleteWorkspaceRows(db, workspace, by.actor, now);
    AddAuditRecord(db, v1::AUDIT_KIND_WORKSPACE, by, workspace, "deleted", DeletedText(deleted),
                   now);
    return absl::OkStatus();
  }));
  return deleted;
}

absl::Status WorkspaceStore::MarkRefused(const v1::WorkspaceReport& report, absl::Time now) {
  return database_.Write([&](Connection& db) {
    MarkWorkspaceRefused(db, report, now);
    return absl::OkStatus();
  });
}

int64_t WorkspaceStore::Usage() {
  int64_t bytes = 0;
  database_
      .Read([&](Connection& db) {
        bytes = ReadWorkspaceUsage(db);
        return absl::OkStatus();
      })
      .IgnoreError();
  return bytes;
}

}  // namespace muster
