#include "services/jobs/template_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/jobs/deployment_rows.h"

namespace muster {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

void StoreTemplateFiles(Connection& db, const std::string& name, const std::string& version,
                        const v1::Deployment& built) {
  v1::Template files;
  *files.mutable_files() = built.files();
  db.Run("INSERT INTO template_files VALUES (?, ?, ?, ?)", name, version, built.deployment(),
         Blob(files.SerializeAsString()));
}

absl::Status TemplateFiles::AddTo(v1::Template* version) {
  return database_.Read([&](Connection& db) {
    Rows rows = db.Query("SELECT files FROM template_files WHERE name = ? AND version = ?",
                         version->name(), version->version());
    if (rows.Next()) *version->mutable_files() = Parsed<v1::Template>(rows.Text()).files();
    return absl::OkStatus();
  });
}

absl::StatusOr<v1::Command::Build> TemplateFiles::FindBuild(const std::string& name,
                                                            const std::string& version) {
  v1::Command command;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    Rows rows = db.Query(
        "SELECT request FROM template_files JOIN deployments ON deployment = build "
        "WHERE name = ? AND version = ?",
        name, version);
    if (!rows.Next()) return absl::OkStatus();
    const auto request = Parsed<v1::CreateDeploymentRequest>(rows.Text());
    command.ParseFromString(request.command().command());
    return absl::OkStatus();
  }));
  if (command.container().build().files().empty()) {
    return errors::TemplateFilesNotStored(absl::StrCat(name, "@", version));
  }
  return std::move(*command.mutable_container()->mutable_build());
}

}  // namespace muster
