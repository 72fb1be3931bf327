#include "services/common/templates/build_content.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/base/image_reference.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/signed_command.h"
#include "services/common/templates/deployment_content.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/files.h"
#include "services/common/templates/template_source.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxRepository = 255;

// Docker takes a first part without "." and ":" as a name at its own registry.
bool HasRegistry(std::string_view name) {
  const std::string_view host = name.substr(0, name.find('/'));
  return host == "localhost" || host.find_first_of(".:") != std::string_view::npos;
}

absl::Status CheckFilesAndSource(const v1::Command::Build& build) {
  if (build.files().empty()) return errors::InvalidFiles("a build has at least one");
  RETURN_IF_ERROR(CheckFiles(build.files()));
  if (const std::string why = WhyInvalidSource(build.source()); !why.empty()) {
    return errors::InvalidBuild(why);
  }
  if (build.source().sha256() != SourceDigest(build.files())) {
    return errors::InvalidBuild("the sha256 of the source is not that of the files");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsRepository(std::string_view name) {
  static const RE2 kPattern(
      "[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
      "(?:/[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*)+");
  return name.size() <= kMaxRepository && HasRegistry(name) &&
         RE2::FullMatch(re2::StringPiece(name.data(), name.size()), kPattern);
}

absl::StatusOr<ResolvedBuild> ResolveBuild(const v1::Command::Build& build) {
  if (std::max(build.type_document().size(), build.template_document().size()) > kMaxDocument) {
    return errors::DocumentTooLarge(kMaxDocument >> 10);
  }
  ResolvedBuild resolved;
  ASSIGN_OR_RETURN(resolved.type, ReadType(build.type_document()));
  ASSIGN_OR_RETURN(resolved.own, ReadTemplate(build.template_document()));
  if (!resolved.own.image.empty()) return errors::SetByBuild("image");
  const std::string type = absl::StrCat(resolved.type.name, "@", resolved.type.version);
  if (resolved.own.type != type) {
    return errors::InvalidDocument(
        absl::StrCat("the template is of type ", resolved.own.type, ", not of ", type));
  }
  RETURN_IF_ERROR(MergeTemplate(resolved.type, resolved.own).status());
  if (resolved.type.build_folder.empty()) return errors::TypeNotBuildable(type);
  if (!IsRepository(build.repository())) {
    return errors::InvalidBuild(
        absl::StrCat("the repository \"", build.repository(),
                     "\" is not REGISTRY/NAME in lower case, without tag and digest"));
  }
  RETURN_IF_ERROR(CheckFilesAndSource(build));
  return resolved;
}

absl::StatusOr<std::string> BuiltDocument(const v1::Command::Build& build,
                                          const std::string& image) {
  auto [json, fault] = ParseExactJson(build.template_document());
  if (!json.is_object()) return errors::InvalidDocument("it is not an object");
  json["image"] = image;
  json["source"] = SourceToJson(build.source());
  std::string document = ExactJsonText(json);
  if (document.size() > kMaxDocument) return errors::DocumentTooLarge(kMaxDocument >> 10);
  return document;
}

bool IsBuiltFrom(const std::string& document, const v1::Command::Build& build) {
  auto [json, fault] = ParseExactJson(document);
  if (!json.is_object() || !json.contains("image") || !json.contains("source")) return false;
  const Json source = json["source"];
  json.erase("image");
  json.erase("source");
  return source.is_object() && source.value("sha256", "") == build.source().sha256() &&
         ExactJsonText(json) == build.template_document();
}

std::string BuiltImage(const v1::JobRecord::Outputs& outputs, std::string_view repository) {
  if (outputs.outputs_size() != 1 || outputs.outputs(0).name() != kImageOutput) return "";
  const Json json = Json::parse(outputs.outputs(0).value(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_string()) return "";
  std::string image = json.get<std::string>();
  return image.starts_with(std::string(repository) + "@") && IsImageByContent(image) ? image : "";
}

void DescribeBuild(const v1::Command::Build& build, const ResolvedBuild& resolved,
                   v1::Deployment* description) {
  description->set_type(resolved.own.type);
  description->set_template_(absl::StrCat(resolved.own.name, "@", resolved.own.version));
  description->set_action(std::string(kBuildAction));
  description->set_image(resolved.type.image);
  DescribeFiles(build.files(), description);
  description->mutable_build()->set_repository(build.repository());
  *description->mutable_build()->mutable_source() = build.source();
}

}  // namespace muster
