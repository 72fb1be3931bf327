// The files that a deployment or a build brings.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_FILES_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_FILES_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// The largest number of files of a deployment or a build: the signed command lists them.
inline constexpr int kMaxFiles = 1'000;
// The largest size of the files together whose content is not part of the command.
inline constexpr int64_t kMaxContentSize = int64_t{1} << 30;

// Returns whether the content of the file is stored by the jobs service and not part of the
// command.
inline bool IsStored(const v1::Command::File& file) { return !file.sha256().empty(); }

// Return the size of the content and its SHA-256 (32 bytes), whether it is stored or not.
int64_t SizeOf(const v1::Command::File& file);
std::string DigestOf(const v1::Command::File& file);

// Returns the sum of the sizes of the stored ones.
int64_t StoredBytes(const google::protobuf::RepeatedPtrField<v1::Command::File>& files);

// Checks the files as Command.Deployment of jobs.proto describes them: then each path stays in the
// folder to which they are written, and no file is written twice. INVALID_ARGUMENT (INVALID_FILES);
// the message names the file.
absl::Status CheckFiles(const google::protobuf::RepeatedPtrField<v1::Command::File>& files);

// Returns why a path is not one of Command.File; empty if it is.
std::string WhyInvalidPath(std::string_view path);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_FILES_H_
