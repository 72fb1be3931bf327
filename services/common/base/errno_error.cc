#include "services/common/base/errno_error.h"

#include <cerrno>
#include <cstring>

#include "services/common/errors/system.h"

namespace muster {

absl::Status ErrnoError(int error_number, std::string_view what, std::string_view subject) {
  char buffer[256];
  const char* text = strerror_r(error_number, buffer, sizeof(buffer));
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return errors::NoSpaceLeft(what, subject, text);
    case ENOENT:
    case ENOTDIR:
      return errors::FileNotFound(what, subject, text);
    case EACCES:
    case EPERM:
      return errors::FileNotAccessible(what, subject, text);
    case EEXIST:
      return errors::FileExists(what, subject, text);
    case EROFS:
      return errors::FileSystemNotWritable(what, subject, text);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return errors::SystemLimit(what, subject, text);
    default:
      return errors::IoError(what, subject, text);
  }
}

}  // namespace muster
