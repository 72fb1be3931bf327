#include "services/common/base/absolute_path.h"

#include <filesystem>
#include <system_error>

namespace muster {

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

}  // namespace muster
