#include "cli/supervisor/home.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "services/common/base/absolute_path.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"

namespace muster::supervisor {
namespace {

std::string PathIn(const Home& home, std::string_view folder, std::string_view name,
                   std::string_view suffix = "") {
  return absl::StrCat(home.path(), "/", ToAbsl(folder), "/", ToAbsl(name), ToAbsl(suffix));
}

}  // namespace

absl::StatusOr<Home> HomeFromEnvironment() {
  if (const char* home = std::getenv("MUSTER_HOME"); home != nullptr && *home != '\0') {
    return Home(AbsolutePath(home));
  }
  if (const char* user = std::getenv("HOME"); user != nullptr && *user != '\0') {
    return Home(absl::StrCat(user, "/.muster"));
  }
  return errors::NoHome();
}

std::string ConfigFile(const Home& home, std::string_view service) {
  return PathIn(home, "config", service, ".yaml");
}

std::string LogFile(const Home& home, std::string_view service) {
  return PathIn(home, "log", service, ".log");
}

std::string PidFile(const Home& home, std::string_view service) {
  return PathIn(home, "run", service, ".pid");
}

std::string AddressesFile(const Home& home, std::string_view service) {
  return PathIn(home, "run", service, ".addresses.json");
}

std::string AllAddressesFile(const Home& home) { return PathIn(home, "run", "addresses.json"); }
std::string SupervisorSocket(const Home& home) { return PathIn(home, "run", "supervisor.sock"); }
std::string SupervisorLock(const Home& home) { return PathIn(home, "run", "supervisor.lock"); }
std::string UpLock(const Home& home) { return PathIn(home, "run", "up.lock"); }

std::string UnfinishedRestore(const Home& home) { return home.path() + "/.restoring"; }

absl::Status MakeHomeFolders(const Home& home) {
  for (const char* folder : {"", "/config", "/log", "/run"}) {
    RETURN_IF_ERROR(MakeFolders(PosixFileOps(), home.path() + folder));
  }
  return absl::OkStatus();
}

}  // namespace muster::supervisor
