#include "services/agent/jobs/deployment_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "services/agent/jobs/file_modes.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/unique_fd.h"
#include "services/common/base/write_all.h"
#include "services/common/templates/files.h"

namespace muster {
namespace {

// Creates the folders of a path below `folder` that do not exist.
absl::Status MakeFoldersOf(const std::string& folder, const std::string& path) {
  for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    const absl::Status made =
        MakeFolderWithMode(absl::StrCat(folder, "/", path.substr(0, end)), kAnyUserEnters);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeFolderWithMode(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), S_IRWXU) != 0) return ErrnoError(errno, "create", path);
  if (chmod(path.c_str(), mode) != 0) return ErrnoError(errno, "set the mode of", path);
  return absl::OkStatus();
}

absl::Status WriteReadOnly(const std::string& path, std::string_view content, bool executable) {
  const mode_t mode = executable ? kAnyUserExecutes : kAnyUserReads;
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.valid()) return ErrnoError(errno, "create", path);
  if (fchmod(fd.get(), mode) != 0) return ErrnoError(errno, "set the mode of", path);
  return WriteAll(fd.get(), content, path);
}

absl::Status WriteDeploymentFiles(
    const std::string& folder, const google::protobuf::RepeatedPtrField<v1::Command::File>& files,
    FetchFile fetch) {
  RETURN_IF_ERROR(MakeFolderWithMode(folder, kAnyUserEnters));
  for (const v1::Command::File& file : files) {
    RETURN_IF_ERROR(MakeFoldersOf(folder, file.path()));
    const std::string path = absl::StrCat(folder, "/", file.path());
    RETURN_IF_ERROR(IsStored(file) ? fetch(path, file)
                                   : WriteReadOnly(path, file.content(), file.executable()));
  }
  return absl::OkStatus();
}

}  // namespace muster
