#include "services/jobs/secret_reads.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/v1/deployments.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/message_text.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/deployment_rows.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

struct OpenRow {
  int64_t id = 0;
  bool ended = false;
  bool cancelled = false;  // by an operator; it may still run
  std::string creator;     // URI
  v1::CreateDeploymentRequest request;
};

std::optional<OpenRow> ReadOpen(Connection& db, const std::string& job) {
  Rows rows = db.Query(
      "SELECT id, ended, cancelled, created_by, request FROM deployments WHERE job = ?", job);
  if (!rows.Next()) return std::nullopt;
  OpenRow row;
  row.id = rows.Int();
  row.ended = rows.Int() != 0;
  row.cancelled = rows.Int() != 0;
  row.creator = rows.Text();
  row.request = Parsed<v1::CreateDeploymentRequest>(rows.Text());
  return row;
}

int64_t CountReads(Connection& db, int64_t id, const std::string& node) {
  Rows rows =
      db.Query("SELECT count(*) FROM secret_reads WHERE deployment = ? AND node = ?", id, node);
  return rows.Next() ? rows.Int() : 0;
}

bool WasUsed(Connection& db, int64_t id, const v1::FetchSecretsRequest& request) {
  Rows rows = db.Query("SELECT 1 FROM secret_reads WHERE deployment = ? AND node = ? AND key = ?",
                       id, request.node(), Blob{request.key()});
  return rows.Next();
}

// Reads the deployment of the job and its command, and checks that the node may read its secrets.
absl::StatusOr<int64_t> FindOpen(Connection& db, const v1::FetchSecretsRequest& request,
                                 const RevocationList& revocations, absl::Time now,
                                 v1::Command* command) {
  const auto closed = [&](std::string_view why) {
    return errors::SecretsClosed(request.job(), request.node(), why);
  };
  const std::optional<OpenRow> row = ReadOpen(db, request.job());
  if (!row || !command->ParseFromString(row->request.command().command())) {
    return errors::JobNotFound(request.job());
  }
  const bool is_target =
      command->targets().all() ||
      std::ranges::find(row->request.nodes(), request.node()) != row->request.nodes().end();
  if (!is_target) return errors::JobNotFound(request.job());
  if (command->container().deployment().secrets().empty()) return closed("it has none");
  if (row->ended) return closed("the deployment has ended");
  if (row->cancelled) return closed("the deployment was cancelled");
  if (revocations.Contains(row->creator)) {
    return closed(absl::StrCat("the creator of the deployment, ", row->creator, ", was revoked"));
  }
  const v1::DeploymentNode node = ReadNode(db, row->id, request.node());
  if (node.has_start_time() || node.has_final()) return closed("it has started there");
  if (now >
      FromProto(command->not_after()) + kCommandClockSlack + FromProto(command->time_limit())) {
    return closed("its time has passed");
  }
  return row->id;
}

}  // namespace

absl::StatusOr<v1::Command::Deployment> SecretReads::Admit(const v1::FetchSecretsRequest& request,
                                                           const RevocationList& revocations,
                                                           absl::Time now) {
  v1::Command command;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) -> absl::Status {
    const auto id = FindOpen(db, request, revocations, now, &command);
    if (db.failed()) return absl::OkStatus();
    if (!id.ok()) return id.status();
    if (WasUsed(db, *id, request)) {
      return errors::SecretsRefused("its key was used by an earlier request");
    }
    if (CountReads(db, *id, request.node()) >= kMaxSecretReads) {
      return errors::SecretsClosed(request.job(), request.node(),
                                   absl::StrCat("they were sent ", kMaxSecretReads, " times"));
    }
    db.Run("INSERT INTO secret_reads VALUES (?, ?, ?, ?)", *id, request.node(), Blob{request.key()},
           absl::ToUnixMicros(now));
    return absl::OkStatus();
  }));
  return command.container().deployment();
}

absl::Status SecretReads::Confirm(const v1::FetchSecretsRequest& request,
                                  const RevocationList& revocations, absl::Time now) {
  return database_.Read([&](Connection& db) {
    v1::Command command;
    return FindOpen(db, request, revocations, now, &command).status();
  });
}

absl::Status SecretReads::Withdraw(const v1::FetchSecretsRequest& request) {
  return database_.Write([&](Connection& db) {
    db.Run(
        "DELETE FROM secret_reads WHERE node = ? AND key = ?"
        " AND deployment = (SELECT id FROM deployments WHERE job = ?)",
        request.node(), Blob{request.key()}, request.job());
    return absl::OkStatus();
  });
}

}  // namespace muster
