// Reads any bytes as the archive of a stranger. The kept files have plain paths, and are bounded.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/sources/local_file.h"
#include "cli/sources/source_archive.h"
#include "cli/temporary_folder.h"
#include "services/common/templates/files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr muster::cli::SourceLimits kLimits = {
      .entries = 100, .files = 50, .bytes = int64_t{1} << 20};
  static const int file = memfd_create("archive", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    return 0;
  }
  static const muster::cli::TemporaryFolder contents;
  muster::cli::SourceFiles files("archive", kLimits, contents.path());
  if (!muster::cli::ReadSourceArchive(path, files).ok()) return 0;
  if (files.bytes() > kLimits.bytes) std::abort();
  const auto read = files.Finish();
  if (!read.ok()) return 0;
  if (read->size() > static_cast<size_t>(kLimits.files) ||
      !muster::CheckFiles(muster::cli::FilesOf(*read)).ok()) {
    std::abort();
  }
  return 0;
}
