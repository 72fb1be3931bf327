#include "services/jobs/built_version.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/build_content.h"
#include "services/jobs/deployment_rows.h"
#include "services/jobs/document_store.h"
#include "services/jobs/template_files.h"

namespace muster {
namespace {

using sqlite::Connection;
using sqlite::Rows;

v1::Command::Build BuildOf(Connection& db, int64_t id) {
  Rows rows = db.Query("SELECT request FROM deployments WHERE id = ?", id);
  if (!rows.Next()) return {};
  v1::Command command;
  command.ParseFromString(Parsed<v1::CreateDeploymentRequest>(rows.Text()).command().command());
  return std::move(*command.mutable_container()->mutable_build());
}

// A build has one node.
v1::JobRecord::Outputs OutputsOf(Connection& db, int64_t id) {
  Rows rows = db.Query("SELECT message FROM deployment_nodes WHERE deployment = ?", id);
  if (!rows.Next()) return {};
  return Parsed<v1::DeploymentNode>(rows.Text()).outputs();
}

// Returns the image of the stored version.
absl::StatusOr<std::string> Store(Connection& db, int64_t id, const v1::Deployment& message) {
  const v1::Command::Build build = BuildOf(db, id);
  const std::string image = BuiltImage(OutputsOf(db, id), build.repository());
  if (image.empty()) {
    return errors::InvalidBuild(
        "the node has signed no image of its repository, or its records were changed on their way");
  }
  ASSIGN_OR_RETURN(std::string document, BuiltDocument(build, image));
  ASSIGN_OR_RETURN(TemplateDocument own, ReadTemplate(document));
  StoredDocument version{.name = std::move(own.name),
                         .version = std::move(own.version),
                         .document = std::move(document),
                         .created_by = message.created_by(),
                         .created_at = absl::ToUnixMicros(FromProto(message.end_time())),
                         .built_by = message.deployment()};
  if (const auto found = FindVersion(db, DocumentKind::kTemplate, version.name, version.version)) {
    if (!IsBuiltFrom(found->document, build)) {
      return errors::VersionExists("template", message.template_());
    }
    ASSIGN_OR_RETURN(own, ReadTemplate(found->document));
    return own.image;
  }
  RETURN_IF_ERROR(AddVersion(db, DocumentKind::kTemplate, version, kMaxVersions));
  StoreTemplateFiles(db, version.name, version.version, message);
  return image;
}

}  // namespace

void StoreBuiltVersion(Connection& db, int64_t id, v1::Deployment* message) {
  auto image = Store(db, id, *message);
  if (image.ok()) return message->mutable_build()->set_image(*std::move(image));
  message->set_state(v1::DEPLOYMENT_STATE_FAILED);
  message->set_problem(std::string(image.status().message()));
}

}  // namespace muster
