#include "cli/supervisor/home.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/strings.h"

namespace muster::supervisor {

absl::StatusOr<Home> Home::FromEnvironment() {
  if (const char* home = std::getenv("MUSTER_HOME"); home != nullptr && *home != '\0') {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(home, error);
    return Home(error ? std::string(home) : path.lexically_normal().string());
  }
  if (const char* user = std::getenv("HOME"); user != nullptr && *user != '\0') {
    return Home(absl::StrCat(user, "/.muster"));
  }
  return MakeError(absl::StatusCode::kNotFound, "NO_HOME",
                   "neither MUSTER_HOME nor HOME is set, so there is no place for state",
                   "Set MUSTER_HOME to a folder that is yours alone.");
}

std::string Home::ConfigFile(std::string_view service) const {
  return absl::StrCat(folder_, "/config/", ToAbsl(service), ".yaml");
}

std::string Home::LogFile(std::string_view service) const {
  return absl::StrCat(folder_, "/log/", ToAbsl(service), ".log");
}

std::string Home::PidFile(std::string_view service) const {
  return absl::StrCat(folder_, "/run/", ToAbsl(service), ".pid");
}

std::string Home::AddressesFile(std::string_view service) const {
  return absl::StrCat(folder_, "/run/", ToAbsl(service), ".addresses.json");
}

absl::Status Home::MakeFolders() const {
  for (const char* folder : {"", "/config", "/log", "/run"}) {
    absl::Status made = muster::MakeFolders(PosixFileOps(), folder_ + folder);
    if (!made.ok()) return made;
  }
  return absl::OkStatus();
}

}  // namespace muster::supervisor
