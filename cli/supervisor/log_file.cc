#include "cli/supervisor/log_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster::supervisor {

void Log(std::string_view message) {
  std::cerr << absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone())
            << " supervisor: " << message << "\n"
            << std::flush;
}

void RotateLogFile(const std::string& path, int64_t limit) {
  if (LogSize(path) <= limit) return;
  std::error_code fault;
  std::filesystem::copy_file(path, path + ".1", std::filesystem::copy_options::overwrite_existing,
                             fault);
  // Truncate it even if the copy failed: the disk may be full.
  std::error_code ignored;
  std::filesystem::resize_file(path, 0, ignored);
  Log(absl::StrCat("log ", path, " exceeded ", limit, " bytes: ",
                   fault ? "truncated, the copy failed: " + fault.message() : "moved to .1"));
}

int64_t LogSize(const std::string& path) {
  std::error_code fault;
  const auto size = std::filesystem::file_size(path, fault);
  return fault ? 0 : static_cast<int64_t>(size);
}

std::string LogTail(const std::string& path, int lines, int64_t skip) {
  constexpr std::streamoff kMaxTail = 16 * 1024;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  if (skip > size) skip = 0;
  file.seekg(std::max<std::streamoff>(size - kMaxTail, skip));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!text.empty() && text.back() != '\n') text += '\n';
  size_t begin = text.size();
  for (int i = 0; i <= lines && begin != std::string::npos && begin > 0; ++i) {
    begin = text.rfind('\n', begin - 1);
  }
  return begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
}

}  // namespace muster::supervisor
