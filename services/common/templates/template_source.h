// The origin of the files of a built template.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_TEMPLATE_SOURCE_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_TEMPLATE_SOURCE_H_

#include <google/protobuf/repeated_field.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "nlohmann/json.hpp"

namespace muster {

// The kinds of a source.
inline constexpr std::string_view kFolderSource = "folder";
inline constexpr std::string_view kZipSource = "zip";
inline constexpr std::string_view kTarSource = "tar";
inline constexpr std::string_view kGitSource = "git";

// Returns the digest of files as Command.Source of jobs.proto describes it. The files are sorted by
// path, as CheckFiles (files.h) demands.
std::string SourceDigest(const google::protobuf::RepeatedPtrField<v1::Command::File>& files);

// Returns what is wrong with a source; empty if nothing is.
std::string WhyInvalidSource(const v1::Command::Source& source);

// A source in the document of a template is an object with the fields of Command.Source; empty ones
// are left out.
nlohmann::json SourceToJson(const v1::Command::Source& source);

// Reads such an object. INVALID_ARGUMENT with the mistake as its message.
absl::StatusOr<v1::Command::Source> SourceFromJson(const nlohmann::json& json);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_TEMPLATE_SOURCE_H_
