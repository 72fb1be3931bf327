#include "cli/backup/home_restore.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/backup/file_copy.h"
#include "cli/backup/home_files.h"
#include "cli/supervisor/home.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/store/sqlite/backup.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxConfig = size_t{1} << 20;

absl::Status CopyBack(const std::string& folder, const Manifest& manifest,
                      const std::string& home) {
  for (const auto& [path, sha256] : manifest.files) {
    const std::string from = PathInBackup(folder, path);
    const auto copied = CopyFile(from, absl::StrCat(home, "/", path));
    if (absl::IsNotFound(copied.status())) return errors::BackupDamaged(from, "is missing");
    if (!copied.ok()) return copied.status();
    if (copied->sha256 != sha256) return errors::BackupDamaged(from, "differs from its checksum");
  }
  return absl::OkStatus();
}

// Returns the home as a configuration file spells it: `muster up` may have known it by another path
// than the backup, such as a link.
std::string HomeInConfig(std::string_view text, const std::string& home) {
  for (absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    if (!absl::ConsumePrefix(&line, "state_folder:")) continue;
    const std::string folder(
        absl::StripPrefix(absl::StripSuffix(absl::StripAsciiWhitespace(line), "\""), "\""));
    if (absl::StartsWith(folder, "/")) return ParentFolder(folder);
  }
  return home;
}

bool IsPathCharacter(char c) { return absl::ascii_isalnum(c) || absl::StrContains("/._-", c); }

// Replaces the folder `from` in all paths that begin with it.
std::string ReplacePath(const std::string& text, const std::string& from, const std::string& to) {
  const std::string below = from + "/";
  std::string replaced;
  size_t at = 0;
  for (size_t found; (found = text.find(below, at)) != std::string::npos;) {
    const bool whole = found == 0 || !IsPathCharacter(text[found - 1]);
    absl::StrAppend(&replaced, text.substr(at, found - at), whole ? to + "/" : below);
    at = found + below.size();
  }
  return replaced + text.substr(at);
}

// The configuration files contain the path of the home.
absl::Status ReplaceHome(const Manifest& manifest, const std::string& folder,
                         const std::string& home) {
  for (const auto& [path, sha256] : manifest.files) {
    if (!absl::StartsWith(path, "config/")) continue;
    const std::string file = absl::StrCat(folder, "/", path);
    ASSIGN_OR_RETURN(const std::string text, ReadFileBounded(file, kMaxConfig));
    RETURN_IF_ERROR(
        WriteFileAtomically(file, ReplacePath(text, HomeInConfig(text, manifest.home), home)));
  }
  return absl::OkStatus();
}

// Moves what is in `from` into its parent, and removes `from`.
absl::Status MoveUp(FileOps& ops, const std::string& from) {
  ASSIGN_OR_RETURN(const auto entries, ops.List(from));
  const std::string parent = ParentFolder(from);
  for (const FolderEntry& entry : entries) {
    RETURN_IF_ERROR(
        ops.Rename(absl::StrCat(from, "/", entry.name), absl::StrCat(parent, "/", entry.name)));
  }
  RETURN_IF_ERROR(ops.SyncFolder(parent));
  RETURN_IF_ERROR(RemoveTree(ops, from));
  return ops.SyncFolder(parent);
}

}  // namespace

std::vector<std::string> UnlistedFiles(const std::string& folder, const Manifest& manifest) {
  namespace fs = std::filesystem;
  const fs::path home = PathInBackup(folder, "");
  std::vector<std::string> unlisted;
  std::error_code fault;
  for (fs::recursive_directory_iterator it(home, fault), end; !fault && it != end;
       it.increment(fault)) {
    if (it->is_directory(fault)) continue;
    std::string path = it->path().lexically_relative(home).string();
    if (!manifest.files.contains(path)) unlisted.push_back(std::move(path));
  }
  return unlisted;
}

absl::StatusOr<Manifest> RestoreHome(const std::string& folder, const std::string& home) {
  FileOps& ops = PosixFileOps();
  const std::string unfinished = supervisor::UnfinishedRestore(Home(home));
  const auto entries = ops.List(home);
  const bool is_new = absl::IsNotFound(entries.status());
  if (!is_new && !entries.ok()) return entries.status();
  for (const FolderEntry& entry : is_new ? std::vector<FolderEntry>() : *entries) {
    if (absl::StrCat(home, "/", entry.name) != unfinished) return errors::HomeNotEmpty(home);
  }
  ASSIGN_OR_RETURN(auto manifest, ReadManifest(folder));
  RETURN_IF_ERROR(RemoveTree(ops, unfinished));
  RETURN_IF_ERROR(MakeFolders(ops, unfinished));
  absl::Cleanup remove = [&] { RemoveTree(ops, is_new ? home : unfinished).IgnoreError(); };
  RETURN_IF_ERROR(CopyBack(folder, manifest, unfinished));
  RETURN_IF_ERROR(sqlite::RenewFeed(absl::StrCat(unfinished, "/", kStateDatabase)));
  RETURN_IF_ERROR(ReplaceHome(manifest, unfinished, home));
  RETURN_IF_ERROR(SyncFileSystem(unfinished));
  std::move(remove).Cancel();
  RETURN_IF_ERROR(MoveUp(ops, unfinished));
  if (is_new) RETURN_IF_ERROR(ops.SyncFolder(ParentFolder(home)));
  return manifest;
}

}  // namespace muster::cli
