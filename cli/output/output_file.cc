#include "cli/output/output_file.h"

#include <sys/stat.h>

#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

const char* KindOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFLNK:
      return "a symbolic link";
    case S_IFDIR:
      return "a folder";
    case S_IFIFO:
      return "a pipe";
    case S_IFSOCK:
      return "a socket";
    default:
      return "a device";
  }
}

}  // namespace

absl::Status CheckOutputFile(const std::string& path) {
  if (path == "-") return errors::OutputNotAFile(path, "standard output");
  struct stat info;
  // A path that cannot be inspected is reported by the open.
  if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return absl::OkStatus();
  return errors::OutputNotAFile(path, KindOf(info.st_mode));
}

}  // namespace muster::cli
