// The files that a deployment brings, on the disk of its node.
#ifndef MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_FILES_H_
#define MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_FILES_H_

#include <google/protobuf/repeated_field.h>
#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// Creates a folder with this mode, whatever the umask is. ALREADY_EXISTS, or another failure of the
// disk.
absl::Status MakeFolderWithMode(const std::string& path, mode_t mode);

// Creates a file that any user may read, or also execute, whatever the umask is. Follows no link at
// its end. ALREADY_EXISTS, or another failure of the disk.
absl::Status WriteReadOnly(const std::string& path, std::string_view content, bool executable);

// Writes a file whose content is not part of the command to this path.
using FetchFile =
    absl::FunctionRef<absl::Status(const std::string& path, const v1::Command::File&)>;

// Creates the folder with the files, which satisfy CheckFiles. Any user may read it.
// ALREADY_EXISTS, another failure of the disk, or that of `fetch`; some of the files may then
// exist.
absl::Status WriteDeploymentFiles(
    const std::string& folder, const google::protobuf::RepeatedPtrField<v1::Command::File>& files,
    FetchFile fetch);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_FILES_H_
