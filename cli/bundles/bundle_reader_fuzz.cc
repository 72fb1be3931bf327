// Reads any bytes as the bundle of a stranger. The unpacked members have the format, and the
// sizes of the index.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/bundles/bundle_reader.h"

namespace {

namespace fs = std::filesystem;

std::string MakeFolder() {
  std::string path = "/dev/shm/muster-fuzz-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) std::abort();
  static std::string made;
  made = path;
  if (std::atexit([] { fs::remove_all(made); }) != 0) std::abort();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("bundle", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  static const std::string folder = MakeFolder();
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    return 0;
  }
  int64_t total = 0;
  const auto members =
      muster::cli::UnpackBundle(path, folder, &total, [](int64_t) { return absl::OkStatus(); });
  if (members.ok()) {
    if (total > static_cast<int64_t>(size)) std::abort();
    for (const auto& member : *members) {
      if (fs::file_size(fs::path(folder) / member.path) != static_cast<uintmax_t>(member.size)) {
        std::abort();
      }
    }
  }
  for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
  return 0;
}
