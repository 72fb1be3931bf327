#include "services/jobs/build_plan.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/common/templates/build_content.h"
#include "services/common/templates/canonical_document.h"

namespace muster {
namespace {

// The document with the built image has to fit, too.
absl::Status CheckBuiltSize(const v1::Command::Build& build) {
  const std::string longest = absl::StrCat(build.repository(), "@sha256:", std::string(64, '0'));
  return BuiltDocument(build, longest).status();
}

// Returns whether the version is stored with the content that the build would give it.
absl::StatusOr<bool> IsBuilt(DocumentStore& documents, const v1::Command::Build& build,
                             const std::string& version) {
  const auto stored = documents.Find(DocumentKind::kTemplate, version);
  if (absl::IsNotFound(stored.status())) return false;
  if (!stored.ok()) return stored.status();
  if (IsBuiltFrom(stored->document, build)) return true;
  ASSIGN_OR_RETURN(const TemplateDocument own, ReadTemplate(stored->document));
  return own.source.sha256() == build.source().sha256() ? errors::VersionExists("template", version)
                                                        : errors::TemplateSourceDiffers(version);
}

// Sets the files of a stored version, and where they came from.
absl::Status AddFilesOf(DocumentStore& documents, TemplateFiles& files, const std::string& from,
                        v1::Command::Build* build) {
  if (!build->files().empty() || build->has_source()) {
    return errors::InvalidBuild("files and source are not set with build_from");
  }
  ASSIGN_OR_RETURN(const auto stored, documents.Find(DocumentKind::kTemplate, from));
  ASSIGN_OR_RETURN(auto earlier, files.FindBuild(stored.name, stored.version));
  *build->mutable_files() = std::move(*earlier.mutable_files());
  *build->mutable_source() = std::move(*earlier.mutable_source());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::DeploymentPlan> PlanBuild(DocumentStore& documents, TemplateFiles& files,
                                             const v1::PlanDeploymentRequest& request) {
  const v1::Command::Build& wanted = request.build();
  if (!wanted.type_document().empty() || !wanted.build().empty()) {
    return errors::InvalidBuild("type_document and build are not set in a plan");
  }
  v1::DeploymentPlan plan;
  v1::Command::Build& build = *plan.mutable_build();
  build = wanted;
  if (!request.build_from().empty()) {
    RETURN_IF_ERROR(AddFilesOf(documents, files, request.build_from(), &build));
  }
  ASSIGN_OR_RETURN(*build.mutable_template_document(),
                   CanonicalDocument(wanted.template_document()));
  ASSIGN_OR_RETURN(const TemplateDocument own, ReadTemplate(build.template_document()));
  ASSIGN_OR_RETURN(auto type, documents.Find(DocumentKind::kType, own.type));
  build.set_type_document(std::move(type.document));
  ASSIGN_OR_RETURN(const ResolvedBuild resolved, ResolveBuild(build));
  RETURN_IF_ERROR(CheckBuiltSize(build));
  const std::string version = absl::StrCat(own.name, "@", own.version);
  ASSIGN_OR_RETURN(const bool is_built, IsBuilt(documents, build, version));
  if (is_built) plan.set_built(version);
  plan.set_image(resolved.type.image);
  return plan;
}

absl::Status ReadBuild(DocumentStore& documents, const v1::Command& command,
                       v1::Deployment* deployment) {
  const v1::Command::Build& build = command.container().build();
  ASSIGN_OR_RETURN(const ResolvedBuild resolved, ResolveBuild(build));
  if (resolved.type.image != command.container().image()) {
    return errors::InvalidDeployment("its image is not that of the type");
  }
  ASSIGN_OR_RETURN(const auto type, documents.Find(DocumentKind::kType, resolved.own.type));
  ASSIGN_OR_RETURN(const auto canonical, CanonicalDocument(build.template_document()));
  if (type.document != build.type_document() || canonical != build.template_document()) {
    return errors::InvalidDeployment("its documents are not those of a plan");
  }
  RETURN_IF_ERROR(CheckBuiltSize(build));
  DescribeBuild(build, resolved, deployment);
  deployment->set_deployment(build.build());
  return IsBuilt(documents, build, deployment->template_()).status();
}

}  // namespace muster
