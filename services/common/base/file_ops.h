// All file work behind one seam, so that tests can put a simulated disk in its place
// (simulated_disk.h): one that forgets what was not synced.
//
// Every failure is a status made by ErrnoError: RESOURCE_EXHAUSTED with reason DISK_FULL,
// NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, or INTERNAL with reason FILE_SYSTEM_NOT_WRITABLE or
// IO_ERROR. Paths are plain strings; everything is created for the owner alone (0600, folders
// 0700). Every call may block.
#ifndef MUSTER_SERVICES_COMMON_BASE_FILE_OPS_H_
#define MUSTER_SERVICES_COMMON_BASE_FILE_OPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// An open file; destruction closes it. Calls that only read may run at the same time; one that
// changes the file needs the file to itself.
class File {
 public:
  virtual ~File() = default;

  // Writes all of `data` at `offset`. After a failure any part of it may have been written.
  virtual absl::Status WriteAt(std::string_view data, int64_t offset) = 0;

  // Fills `buffer` from `offset` on and returns how many bytes there were: fewer than asked for
  // only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(std::span<char> buffer, int64_t offset) = 0;

  // Reserves disk space up to `size` without changing the file's size, so that a full disk is known
  // early. A file system that cannot do this is no error.
  virtual absl::Status Reserve(int64_t size) = 0;

  // Starts writing dirty bytes of the range to the disk without waiting: a hint that keeps the next
  // sync short.
  virtual void StartWriteback(int64_t offset, int64_t length) = 0;

  // Makes the content and the size durable (fdatasync). Never repeat one that failed: the kernel
  // may have dropped what it could not write and answers the next call with success. The file's
  // content since the last good sync counts as lost.
  virtual absl::Status SyncData() = 0;

  virtual absl::Status Truncate(int64_t size) = 0;
  virtual absl::StatusOr<int64_t> Size() = 0;

  // Gives an unnamed file (FileOps::CreateUnnamed) its name. ALREADY_EXISTS if it is taken.
  virtual absl::Status LinkTo(const std::string& path) = 0;

  // Takes the file's exclusive lock (flock) for as long as the file is open. FAILED_PRECONDITION
  // with reason FILE_LOCKED if another holds it.
  virtual absl::Status Lock() = 0;
};

enum class OpenMode {
  kRead,
  kReadWrite,          // must exist
  kReadWriteOrCreate,  // 0600
};

enum class FileType { kFile, kFolder, kOther };

struct FileInfo {
  FileType type = FileType::kFile;
  int64_t size = 0;
  int64_t modified_at = 0;  // microseconds since the epoch
  int64_t links = 1;        // names that a file has
};

struct FolderEntry {
  std::string name;
  FileType type = FileType::kFile;
};

struct SpaceInfo {
  int64_t total = 0;
  int64_t available = 0;  // for this process's user
};

// Thread-safe.
class FileOps {
 public:
  virtual ~FileOps() = default;

  // A new file, open for reading and writing. ALREADY_EXISTS if the name is taken.
  virtual absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) = 0;

  // A new file without a name in the file system of `folder`; gone unless it is linked.
  // UNIMPLEMENTED where the file system has no such files (NFS).
  virtual absl::StatusOr<std::unique_ptr<File>> CreateUnnamed(const std::string& folder) = 0;

  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) = 0;

  // Replaces an existing `to` atomically.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;

  // ALREADY_EXISTS if `to` exists.
  virtual absl::Status RenameNoReplace(const std::string& from, const std::string& to) = 0;

  // Makes the names in a folder durable: needed after create, link, rename, remove and mkdir.
  // Fails on a read-only file system: a damaged one becomes read-only before names are durable.
  virtual absl::Status SyncFolder(const std::string& path) = 0;

  virtual absl::Status Remove(const std::string& path) = 0;
  virtual absl::Status RemoveFolder(const std::string& path) = 0;  // must be empty
  virtual absl::Status MakeFolder(const std::string& path) = 0;
  virtual absl::StatusOr<std::vector<FolderEntry>> List(const std::string& path) = 0;
  virtual absl::StatusOr<FileInfo> Stat(const std::string& path) = 0;
  virtual absl::StatusOr<SpaceInfo> Space(const std::string& path) = 0;
};

// Returns the operations on the real disk, which exist as long as the process.
FileOps& PosixFileOps();

// Returns the parent folder of `path`: "/a" for "/a/b", "." for "b".
std::string ParentFolder(std::string_view path);

// Creates `path` and its missing parents, each durable in its parent. Succeeds if it exists; then
// it is durable as well.
absl::Status MakeFolders(FileOps& ops, const std::string& path);

// Replaces `path` with `data`, durably: a reader, and a crash at any point, sees the old content or
// the new one. Writers of one path must not run at the same time.
absl::Status WriteFileDurably(FileOps& ops, const std::string& path, std::string_view data);

// Returns the content of a file. OUT_OF_RANGE (FILE_TOO_LARGE) if it is longer than `limit` bytes.
absl::StatusOr<std::string> ReadSmallFile(FileOps& ops, const std::string& path, int64_t limit);

// Removes a folder with its content. Succeeds if it does not exist.
absl::Status RemoveTree(FileOps& ops, const std::string& path);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_FILE_OPS_H_
