#include "services/jobs/workspace_reader.h"

#include <algorithm>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/contents.h"
#include "services/common/errors/results.h"
#include "services/common/errors/workspaces.h"
#include "services/jobs/deployment_rows.h"
#include "services/jobs/workspace_rows.h"

namespace muster {
namespace {

using sqlite::Connection;
using sqlite::Rows;

constexpr auto kPart = static_cast<int64_t>(kWorkspacePart);

std::string KeyReference(const std::string& name) { return absl::StrCat("workspace ", name); }

}  // namespace

std::string WorkspaceBlob(const std::string& upload) {
  return absl::StrCat(kWorkspaceBlobs, upload);
}

absl::StatusOr<std::string> WorkspaceReader::WrapNewKey(const std::string& workspace) const {
  ASSIGN_OR_RETURN(const Secret key, NewWorkspaceKey());
  return key_wrap_.WrapSecret(key.view(), KeyReference(workspace));
}

absl::StatusOr<std::unique_ptr<WorkspaceCipher>> WorkspaceReader::CipherOf(
    const std::string& workspace, const std::string& upload, int64_t size) const {
  std::string wrapped;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    if (const auto row = ReadWorkspace(db, workspace)) wrapped = row->data_key;
    return absl::OkStatus();
  }));
  ASSIGN_OR_RETURN(Secret key, key_wrap_.UnwrapSecret(wrapped, KeyReference(workspace)));
  return std::make_unique<WorkspaceCipher>(std::move(key), workspace, upload, size);
}

absl::StatusOr<ContentBytes> WorkspaceReader::Read(const std::string& deployment,
                                                   const std::string& node,
                                                   const std::string& sha256, int64_t offset,
                                                   size_t limit) {
  v1::Command::WorkspaceReference named;
  std::optional<WorkspaceVersionRow> version;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    Rows rows =
        db.Query("SELECT message, request FROM deployments WHERE deployment = ?", deployment);
    if (!rows.Next()) return absl::OkStatus();
    named = Parsed<v1::Deployment>(rows.Text()).workspace();
    const auto request = Parsed<v1::CreateDeploymentRequest>(rows.Text());
    if (std::ranges::find(request.nodes(), node) == request.nodes().end()) return absl::OkStatus();
    version = ReadWorkspaceVersion(db, named.workspace(), named.version());
    return absl::OkStatus();
  }));
  if (!version || named.sha256() != sha256 || version->sha256 != sha256) {
    return errors::ContentNotFound(absl::BytesToHexString(sha256), deployment);
  }
  if (offset < 0 || offset > version->size) return errors::OffsetTooHigh(offset, version->size);
  ContentBytes bytes;
  bytes.size = version->size;
  if (offset == version->size) return bytes;
  const int64_t index = offset / kPart;
  const auto read = [&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const auto cipher,
                     CipherOf(named.workspace(), version->upload, version->size));
    ASSIGN_OR_RETURN(const auto sealed,
                     blobs_.Open(WorkspaceBlob(version->upload), SealedSize(index * kPart)));
    SealedArchive archive(*cipher, *sealed, index, std::min((index + 1) * kPart, version->size));
    return ReadUpTo(archive, kWorkspacePart);
  };
  auto part = read();
  if (absl::IsDataLoss(part.status()) || absl::IsNotFound(part.status()) ||
      absl::IsOutOfRange(part.status())) {
    Log(LogLevel::kError, "a version of a workspace cannot be read",
        {{"workspace", named.workspace()}, {"version", named.version()}, {"error", part.status()}});
    return errors::WorkspaceDamaged(named.workspace(), named.version());
  }
  if (!part.ok()) return part.status();
  bytes.data = part->substr(static_cast<size_t>(offset - index * kPart), limit);
  return bytes;
}

}  // namespace muster
