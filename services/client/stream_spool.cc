#include "services/client/stream_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/write_all.h"
#include "services/common/errors/client.h"

namespace muster::client {
namespace {

absl::StatusOr<UniqueFd> NamelessFile(std::string folder) {
  if (folder.empty()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): this library sets no variable.
    const char* temporary = std::getenv("TMPDIR");
    folder = temporary != nullptr && *temporary != '\0' ? temporary : "/var/tmp";
  }
  UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid()) return fd;
  // Some file systems do not support unnamed files.
  std::string name = folder + "/muster-XXXXXX";
  fd.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "make a temporary file in", folder);
  ::unlink(name.c_str());
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SourceFile>> SpoolStream(const Reader& reader, std::string folder,
                                                        int64_t limit) {
  ASSIGN_OR_RETURN(auto fd, NamelessFile(std::move(folder)));
  std::vector<char> buffer(256 * 1024);
  int64_t size = 0;
  while (true) {
    const std::ptrdiff_t got = reader(buffer.data(), buffer.size());
    if (got < 0) return errors::StreamFailed(size);
    if (got == 0) break;
    size += got;
    if (size > limit) return errors::ResultTooLarge("the stream", size, limit);
    const std::string_view data(buffer.data(), static_cast<size_t>(got));
    RETURN_IF_ERROR(WriteAll(fd.get(), data, "the temporary file of a stream"));
  }
  return SourceFile::Adopt(std::move(fd), "stream");
}

}  // namespace muster::client
