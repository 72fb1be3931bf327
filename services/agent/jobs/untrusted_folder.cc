#include "services/agent/jobs/untrusted_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/unique_fd.h"

namespace muster {
namespace {

constexpr int64_t kDiskBlock = 512;  // the unit of st_blocks

// An open folder that is read.
class FolderStream {
 public:
  // Keeps errno if `fd` is invalid.
  explicit FolderStream(UniqueFd fd) : stream_(fd.valid() ? fdopendir(fd.get()) : nullptr) {
    if (stream_ != nullptr) (void)fd.release();
  }

  bool valid() const { return stream_ != nullptr; }
  int fd() const { return dirfd(stream_.get()); }
  void Rewind() { rewinddir(stream_.get()); }

  // Returns the next name, or null at the end.
  const char* Next() {
    while (const dirent* entry = readdir(stream_.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") return entry->d_name;
    }
    return nullptr;
  }

 private:
  struct Close {
    void operator()(DIR* stream) const { closedir(stream); }
  };
  std::unique_ptr<DIR, Close> stream_;
};

UniqueFd OpenFolder(int parent, const char* name) {
  return UniqueFd(
      openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
}

// Counts the content of one folder.
class FolderCount {
 public:
  explicit FolderCount(const FolderLimits& limits) : limits_(limits) {}

  // Returns the exceeded limit.
  std::string Add(UniqueFd fd, int level) {
    if (level > limits_.levels)
      return absl::StrCat("more than ", limits_.levels, " levels of folders");
    FolderStream folder(std::move(fd));
    if (!folder.valid()) return "";
    while (const char* name = folder.Next()) {
      if (++entries_ > limits_.entries) {
        return absl::StrCat("more than ", limits_.entries, " files and folders");
      }
      struct stat info = {};
      if (fstatat(folder.fd(), name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;  // it is removed
      const int64_t size = std::max(int64_t{info.st_size}, int64_t{info.st_blocks} * kDiskBlock);
      // A sparse file may have any size up to the largest number.
      if (size > limits_.bytes - bytes_) {
        return absl::StrCat("more than ", limits_.bytes >> 20, " MiB");
      }
      bytes_ += size;
      if (!S_ISDIR(info.st_mode)) continue;
      UniqueFd below = OpenFolder(folder.fd(), name);
      if (!below.valid() && errno == EACCES) return "a folder that the agent may not read";
      if (!below.valid()) continue;  // it is replaced
      if (std::string why = Add(std::move(below), level + 1); !why.empty()) return why;
    }
    return "";
  }

 private:
  const FolderLimits limits_;
  int64_t entries_ = 0;
  int64_t bytes_ = 0;
};

// Visits the content of folders. Each level has one open folder.
class Visitor {
 public:
  using Visit = absl::FunctionRef<absl::StatusOr<bool>(const UntrustedEntry& entry)>;

  Visitor(int max_levels, Visit visit) : max_levels_(max_levels), visit_(visit) {}

  absl::Status Enter(UniqueFd fd, const std::string& path, int level) {
    if (level > max_levels_) {
      return absl::OutOfRangeError(absl::StrCat("more than ", max_levels_, " levels of folders"));
    }
    const int fault = errno;
    FolderStream folder(std::move(fd));
    if (!folder.valid()) return ErrnoError(fault, "open", path.empty() ? "the folder" : path);
    std::vector<std::string> names;
    while (const char* name = folder.Next()) names.emplace_back(name);
    std::ranges::sort(names);
    for (const std::string& name : names) {
      const std::string below = path.empty() ? name : absl::StrCat(path, "/", name);
      struct stat info = {};
      if (fstatat(folder.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return ErrnoError(errno, "read", below);
      }
      ASSIGN_OR_RETURN(const bool enter, visit_({below, folder.fd(), name, info}));
      if (!enter || !S_ISDIR(info.st_mode)) continue;
      UniqueFd next = OpenFolder(folder.fd(), name.c_str());
      RETURN_IF_ERROR(Enter(std::move(next), below, level + 1));
    }
    return absl::OkStatus();
  }

 private:
  const int max_levels_;
  const Visit visit_;
};

// Opens a folder, and makes it readable and writable for its owner if that is required.
UniqueFd OpenToEmpty(int parent, const char* name) {
  UniqueFd fd = OpenFolder(parent, name);
  const UniqueFd found(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!found.valid()) return fd;
  // No link can take the place of a descriptor.
  chmod(absl::StrCat("/proc/self/fd/", found.get()).c_str(), S_IRWXU);
  return fd.valid() ? std::move(fd) : OpenFolder(parent, name);
}

bool Unlink(int folder, const char* name) {
  return unlinkat(folder, name, 0) == 0 || unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

// Empties a folder. Content of any depth requires two descriptors: folders in the folders of `top`
// are moved to `top`.
class Emptier {
 public:
  explicit Emptier(FolderStream& top) : top_(top) {}

  absl::Status Empty() {
    for (bool again = true; again;) {
      again = false;
      failure_ = absl::OkStatus();
      top_.Rewind();
      while (const char* name = top_.Next()) {
        again = Unlink(top_.fd(), name) || Lift(name) || again;
      }
    }
    return failure_;
  }

 private:
  // Empties and removes a folder of `top`. Returns whether it changed anything.
  bool Lift(const char* name) {
    FolderStream folder(OpenToEmpty(top_.fd(), name));
    if (!folder.valid()) return Fail(name);
    bool changed = false;
    while (const char* child = folder.Next()) {
      if (Unlink(folder.fd(), child) || Move(folder.fd(), child)) {
        changed = true;
      } else {
        Fail(child);
      }
    }
    return Unlink(top_.fd(), name) || changed;
  }

  bool Move(int folder, const char* child) {
    constexpr int kAttempts = 1'000'000;  // a name may be taken
    OpenToEmpty(folder, child);           // only a writable folder can be moved
    for (int i = 0; i < kAttempts; ++i) {
      const std::string name = absl::StrCat("moved-", next_++);
      if (renameat(folder, child, top_.fd(), name.c_str()) == 0) return true;
      if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR && errno != EISDIR) break;
    }
    return false;
  }

  bool Fail(const char* name) {
    if (failure_.ok()) failure_ = ErrnoError(errno, "remove", name);
    return false;
  }

  FolderStream& top_;
  int64_t next_ = 0;
  absl::Status failure_;
};

}  // namespace

std::string WhyTooLarge(const std::string& folder, const FolderLimits& limits) {
  UniqueFd fd = OpenFolder(AT_FDCWD, folder.c_str());
  return fd.valid() ? FolderCount(limits).Add(std::move(fd), 1) : "";
}

absl::Status VisitUntrusted(
    const std::string& folder, int max_levels,
    absl::FunctionRef<absl::StatusOr<bool>(const UntrustedEntry& entry)> visit) {
  UniqueFd fd = OpenFolder(AT_FDCWD, folder.c_str());
  return Visitor(max_levels, visit).Enter(std::move(fd), "", 1);
}

absl::Status RemoveUntrusted(const std::string& folder) {
  if (unlink(folder.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  FolderStream top(OpenToEmpty(AT_FDCWD, folder.c_str()));
  if (!top.valid()) return ErrnoError(errno, "open", folder);
  const absl::Status emptied = Emptier(top).Empty();
  if (rmdir(folder.c_str()) == 0) return absl::OkStatus();
  return emptied.ok() ? ErrnoError(errno, "remove", folder) : emptied;
}

}  // namespace muster
