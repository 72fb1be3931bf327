// The files that a deployment brings.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_FILES_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_FILES_H_

#include <google/protobuf/repeated_field.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// The largest number of files of a deployment. Their content is bounded by the size of the command.
inline constexpr int kMaxFiles = 1'000;

// Checks the files as Command.Deployment of jobs.proto describes them: then each path stays in the
// folder to which they are written, and no file is written twice. INVALID_ARGUMENT (INVALID_FILES);
// the message names the file.
absl::Status CheckFiles(const google::protobuf::RepeatedPtrField<v1::Command::File>& files);

// Returns why a path is not one of Command.File; empty if it is.
std::string WhyInvalidPath(std::string_view path);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_FILES_H_
