// The content of a build: the documents, the files and the repository of a template's image.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_BUILD_CONTENT_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_BUILD_CONTENT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/templates/documents.h"

namespace muster {

// The output of a build: the image, a JSON text NAME@sha256:DIGEST.
inline constexpr std::string_view kImageOutput = "image";

struct ResolvedBuild {
  TypeDocument type;
  TemplateDocument own;
};

// Returns whether `name` is a repository of a named registry, without tag and digest, such as
// "registry.example:5000/templates/web". At most 255 characters.
bool IsRepository(std::string_view name);

// Checks the content of a build. The jobs service and the node call it with the same content, so
// both decide alike. INVALID_ARGUMENT (INVALID_DOCUMENT, INVALID_FILES, INVALID_BUILD),
// FAILED_PRECONDITION (TYPE_NOT_BUILDABLE).
absl::StatusOr<ResolvedBuild> ResolveBuild(const v1::Command::Build& build);

// Returns the document of the version that the build creates: that of the template, with image and
// source. INVALID_ARGUMENT (INVALID_DOCUMENT: it is too large with them).
absl::StatusOr<std::string> BuiltDocument(const v1::Command::Build& build,
                                          const std::string& image);

// Returns whether a stored document is one that the build may create: it differs in its image, and
// in how its source was read, at most.
bool IsBuiltFrom(const std::string& document, const v1::Command::Build& build);

// Returns the image of a build's outputs, or an empty text if they name none in its repository.
std::string BuiltImage(const v1::JobRecord::Outputs& outputs, std::string_view repository);

// Sets type, template, action, image, files and `build` of `*description`. `resolved` is that of
// `build`.
void DescribeBuild(const v1::Command::Build& build, const ResolvedBuild& resolved,
                   v1::Deployment* description);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_BUILD_CONTENT_H_
