#include "services/common/base/file_ops.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/base.h"

namespace muster {

std::string ParentFolder(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

namespace {

// Makes the names of an existing folder and of its parents durable. An earlier process may have
// made them, and ended before it synced them. It did not make names in folders that must not be
// opened or written.
absl::Status SyncNames(FileOps& ops, const std::string& path) {
  for (std::string folder = ParentFolder(path);; folder = ParentFolder(folder)) {
    const absl::Status synced = ops.SyncFolder(folder);
    if (absl::IsPermissionDenied(synced)) return absl::OkStatus();
    if (ReasonOf(synced) == "FILE_SYSTEM_NOT_WRITABLE") return absl::OkStatus();
    RETURN_IF_ERROR(synced);
    if (folder == "/" || folder == ".") return absl::OkStatus();
  }
}

}  // namespace

absl::Status MakeFolders(FileOps& ops, const std::string& path) {
  const absl::Status made = ops.MakeFolder(path);
  if (absl::IsNotFound(made)) {
    RETURN_IF_ERROR(MakeFolders(ops, ParentFolder(path)));
    if (absl::Status again = ops.MakeFolder(path); !again.ok() && !absl::IsAlreadyExists(again)) {
      return again;
    }
    return ops.SyncFolder(ParentFolder(path));
  }
  if (absl::IsAlreadyExists(made)) {
    ASSIGN_OR_RETURN(auto info, ops.Stat(path));
    if (info.type != FileType::kFolder) return errors::NotAFolder(path);
    return SyncNames(ops, path);
  }
  RETURN_IF_ERROR(made);
  RETURN_IF_ERROR(ops.SyncFolder(ParentFolder(path)));
  return SyncNames(ops, ParentFolder(path));
}

absl::Status WriteFileDurably(FileOps& ops, const std::string& path, std::string_view data) {
  const std::string staged = absl::StrCat(path, ".new");
  if (absl::Status removed = ops.Remove(staged); !removed.ok() && !absl::IsNotFound(removed)) {
    return removed;
  }
  ASSIGN_OR_RETURN(auto file, ops.Create(staged));
  RETURN_IF_ERROR(file->WriteAt(data, 0));
  RETURN_IF_ERROR(file->SyncData());
  RETURN_IF_ERROR(ops.Rename(staged, path));
  return ops.SyncFolder(ParentFolder(path));
}

absl::StatusOr<std::string> ReadSmallFile(FileOps& ops, const std::string& path, int64_t limit) {
  ASSIGN_OR_RETURN(auto file, ops.Open(path, OpenMode::kRead));
  std::string content;
  while (true) {
    const size_t have = content.size();
    const size_t step = std::min<size_t>(64 * 1024, limit + 1 - have);
    content.resize(have + step);
    ASSIGN_OR_RETURN(auto got,
                     file->ReadAt({content.data() + have, step}, static_cast<int64_t>(have)));
    content.resize(have + got);
    if (static_cast<int64_t>(content.size()) > limit) {
      return errors::FileLongerThan(path, limit);
    }
    if (got < step) return content;
  }
}

absl::Status RemoveTree(FileOps& ops, const std::string& path) {
  auto entries = ops.List(path);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  if (!entries.ok()) return entries.status();
  for (const FolderEntry& entry : *entries) {
    const std::string child = absl::StrCat(path, "/", entry.name);
    absl::Status removed =
        entry.type == FileType::kFolder ? RemoveTree(ops, child) : ops.Remove(child);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  absl::Status removed = ops.RemoveFolder(path);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

}  // namespace muster
