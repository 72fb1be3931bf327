#include "cli/temporary_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace muster::cli {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(const std::string& parent) {
  std::error_code fault;
  const fs::path base = parent.empty() ? fs::temp_directory_path(fault) : fs::path(parent);
  if (fault) return;
  std::string path = (fs::absolute(base, fault) / ".muster-XXXXXX").string();
  if (!fault && mkdtemp(path.data()) != nullptr) path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace muster::cli
