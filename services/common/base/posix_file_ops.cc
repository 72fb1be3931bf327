#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/write_all.h"
#include "services/common/errors/base.h"
#include "services/common/errors/system.h"

namespace muster {
namespace {

// Runs a system call again when a signal interrupted it.
template <typename Call>
auto Retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

absl::Status Check(int result, std::string_view what, std::string_view subject) {
  return result < 0 ? ErrnoError(errno, what, subject) : absl::OkStatus();
}

FileType TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kFile;
  return S_ISDIR(mode) ? FileType::kFolder : FileType::kOther;
}

class PosixFile final : public File {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  // A failure of close tells nothing new: what matters was synced before, and its result checked.
  ~PosixFile() override { close(fd_); }

  absl::Status WriteAt(std::string_view data, int64_t offset) override {
    return WriteAllAt(fd_, data, offset, path_);
  }

  absl::StatusOr<size_t> ReadAt(std::span<char> buffer, int64_t offset) override {
    size_t done = 0;
    while (done < buffer.size()) {
      const ssize_t n = Retry([&] {
        return pread(fd_, buffer.data() + done, buffer.size() - done,
                     offset + static_cast<int64_t>(done));
      });
      if (n < 0) return ErrnoError(errno, "read", path_);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  // Only the part that was not reserved before: the kernel visits every page of the range.
  absl::Status Reserve(int64_t size) override {
    const off_t from = reserved_;
    if (size <= from) return absl::OkStatus();
    const int result =
        Retry([&] { return fallocate(fd_, FALLOC_FL_KEEP_SIZE, from, size - from); });
    if (result < 0 && errno != EOPNOTSUPP) return ErrnoError(errno, "reserve space for", path_);
    reserved_ = size;
    return absl::OkStatus();
  }

  void StartWriteback(int64_t offset, int64_t length) override {
    sync_file_range(fd_, offset, length, SYNC_FILE_RANGE_WRITE);
  }

  absl::Status SyncData() override { return Check(fdatasync(fd_), "sync", path_); }

  absl::Status Truncate(int64_t size) override {
    reserved_ = std::min(reserved_, size);
    return Check(Retry([&] { return ftruncate(fd_, size); }), "truncate", path_);
  }

  absl::StatusOr<int64_t> Size() override {
    struct stat info;
    if (fstat(fd_, &info) < 0) return ErrnoError(errno, "stat", path_);
    return info.st_size;
  }

  absl::Status LinkTo(const std::string& path) override {
    const std::string self = absl::StrCat("/proc/self/fd/", fd_);
    return Check(linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW), "link",
                 path);
  }

  absl::Status Lock() override {
    if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
    if (errno != EWOULDBLOCK) return ErrnoError(errno, "lock", path_);
    return errors::FileLocked(path_);
  }

 private:
  const int fd_;
  const std::string path_;
  int64_t reserved_ = 0;  // by this object, from the beginning of the file
};

class Posix final : public FileOps {
 public:
  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) override {
    return OpenFlags(path, O_RDWR | O_CREAT | O_EXCL, "create");
  }

  absl::StatusOr<std::unique_ptr<File>> CreateUnnamed(const std::string& folder) override {
    const int fd =
        Retry([&] { return open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600); });
    if (fd >= 0) return std::make_unique<PosixFile>(fd, folder);
    // EISDIR: the kernel or the file system does not know the flag and took the folder for a file.
    if (errno != EOPNOTSUPP && errno != EISDIR)
      return ErrnoError(errno, "create a file in", folder);
    return absl::UnimplementedError(absl::StrCat("no unnamed files in ", folder));
  }

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    switch (mode) {
      case OpenMode::kRead:
        return OpenFlags(path, O_RDONLY, "open");
      case OpenMode::kReadWrite:
        return OpenFlags(path, O_RDWR, "open");
      case OpenMode::kReadWriteOrCreate:
        return OpenFlags(path, O_RDWR | O_CREAT, "open");
    }
    return absl::InvalidArgumentError("unknown open mode");
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Check(rename(from.c_str(), to.c_str()), "rename to", to);
  }

  absl::Status RenameNoReplace(const std::string& from, const std::string& to) override {
    int result = renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
    if (result < 0 && errno == EINVAL) {
      // NFS and some FUSE file systems do not know the flag; a hard link refuses just as well.
      result = link(from.c_str(), to.c_str());
      if (result == 0) result = unlink(from.c_str());
    }
    return Check(result, "rename to", to);
  }

  absl::Status SyncFolder(const std::string& path) override {
    const int fd = Retry([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return ErrnoError(errno, "open", path);
    absl::Cleanup closer = [fd] { close(fd); };
    if (fsync(fd) == 0) return absl::OkStatus();
    // Read-only file systems, such as squashfs, and some writable ones have no fsync for folders.
    if (errno == EINVAL) return errors::FolderSyncUnsupported(path);
    return ErrnoError(errno, "sync folder", path);
  }

  absl::Status Remove(const std::string& path) override {
    return Check(unlink(path.c_str()), "remove", path);
  }

  absl::Status RemoveFolder(const std::string& path) override {
    return Check(rmdir(path.c_str()), "remove folder", path);
  }

  absl::Status MakeFolder(const std::string& path) override {
    return Check(mkdir(path.c_str(), 0700), "make folder", path);
  }

  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& path) override {
    DIR* folder = opendir(path.c_str());
    if (folder == nullptr) return ErrnoError(errno, "list", path);
    absl::Cleanup closer = [folder] { closedir(folder); };
    std::vector<FolderEntry> entries;
    errno = 0;
    while (dirent* entry = readdir(folder)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat info;
      if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT) return ErrnoError(errno, "stat", absl::StrCat(path, "/", name));
      } else {
        entries.push_back({name, TypeOf(info.st_mode)});
      }
      errno = 0;
    }
    if (errno != 0) return ErrnoError(errno, "list", path);
    return entries;
  }

  absl::StatusOr<FileInfo> Stat(const std::string& path) override {
    struct stat info;
    if (stat(path.c_str(), &info) < 0) return ErrnoError(errno, "stat", path);
    return FileInfo{TypeOf(info.st_mode), info.st_size,
                    info.st_mtim.tv_sec * 1'000'000 + info.st_mtim.tv_nsec / 1000,
                    static_cast<int64_t>(info.st_nlink)};
  }

  absl::StatusOr<SpaceInfo> Space(const std::string& path) override {
    struct statvfs info;
    if (Retry([&] { return statvfs(path.c_str(), &info); }) < 0) {
      return ErrnoError(errno, "ask for free space of", path);
    }
    const int64_t block = static_cast<int64_t>(info.f_frsize);
    return SpaceInfo{static_cast<int64_t>(info.f_blocks) * block,
                     static_cast<int64_t>(info.f_bavail) * block};
  }

 private:
  static absl::StatusOr<std::unique_ptr<File>> OpenFlags(const std::string& path, int flags,
                                                         std::string_view what) {
    const int fd = Retry([&] { return open(path.c_str(), flags | O_CLOEXEC, 0600); });
    if (fd < 0) return ErrnoError(errno, what, path);
    return std::make_unique<PosixFile>(fd, path);
  }
};

}  // namespace

FileOps& PosixFileOps() {
  static Posix& ops = *new Posix;
  return ops;
}

}  // namespace muster
