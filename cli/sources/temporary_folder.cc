#include "cli/sources/temporary_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace muster::cli {

TemporaryFolder::TemporaryFolder() {
  std::error_code fault;
  std::string path = (std::filesystem::temp_directory_path(fault) / "muster-XXXXXX").string();
  if (!fault && mkdtemp(path.data()) != nullptr) path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace muster::cli
