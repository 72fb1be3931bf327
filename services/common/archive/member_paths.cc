#include "services/common/archive/member_paths.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/names.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

absl::Status Refuse(std::string_view why, std::string_view path) {
  // A path may contain any bytes; a note shows only its beginning.
  return absl::InvalidArgumentError(
      absl::StrCat(ToAbsl(why), ": ", ToAbsl(SafeFileName(path.substr(0, 200)))));
}

std::string KeyOf(std::string_view path) { return DigestBytes(Sha256::Of(path)).substr(0, 16); }

}  // namespace

absl::StatusOr<std::string> MemberPaths::Resolve(std::string_view raw) const {
  if (raw.starts_with('/')) return Refuse("an absolute name", raw);
  if (raw.size() > limits_.max_path) return Refuse("too long a path", raw);
  std::string path;
  size_t depth = 0;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(raw), '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return Refuse("a name that leaves its folder", raw);
    if (part.size() > limits_.max_name) return Refuse("too long a name", raw);
    if (++depth > limits_.max_depth) return Refuse("too deeply nested folders", raw);
    absl::StrAppend(&path, path.empty() ? "" : "/", ToAbsl(SafeFileName(ToStd(part))));
  }
  return path;
}

absl::Status MemberPaths::Reserve(std::string_view path, Kind kind) {
  if (static_cast<int64_t>(taken_.size()) >= limits_.max_entries) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", limits_.max_entries, " files and folders"));
  }
  taken_.emplace(KeyOf(path), kind);
  return absl::OkStatus();
}

absl::Status MemberPaths::AddFolders(std::string_view path) {
  for (size_t end = 0; end != std::string_view::npos;) {
    end = path.find('/', end + 1);
    const std::string_view folder = path.substr(0, end);
    const auto found = taken_.find(KeyOf(folder));
    if (found == taken_.end()) {
      RETURN_IF_ERROR(Reserve(folder, Kind::kFolder));
    } else if (found->second == Kind::kFile) {
      return Refuse("a name that is both a file and a folder", folder);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemberPaths::File(std::string_view raw) {
  ASSIGN_OR_RETURN(const std::string path, Resolve(raw));
  if (path.empty()) return Refuse("a file without a name", raw);
  if (const size_t slash = path.rfind('/'); slash != std::string::npos) {
    RETURN_IF_ERROR(AddFolders(path.substr(0, slash)));
  }
  std::string free = path;
  for (int n = 2;; ++n) {
    const auto found = taken_.find(KeyOf(free));
    if (found == taken_.end()) break;
    if (found->second == Kind::kFolder) {
      return Refuse("a name that is both a file and a folder", raw);
    }
    constexpr int kMaxSame = 100;
    if (n > kMaxSame) return Refuse("too many files of one name", raw);
    const std::string suffix = absl::StrCat("~", n);
    const size_t base = path.rfind('/') + 1;  // 0 if there is none
    const size_t room = kMaxFileName - suffix.size();
    free = absl::StrCat(path.substr(0, base),
                        SafeFileName(std::string_view(path).substr(base).substr(0, room)), suffix);
  }
  RETURN_IF_ERROR(Reserve(free, Kind::kFile));
  return free;
}

absl::StatusOr<std::optional<std::string>> MemberPaths::Folder(std::string_view raw) {
  ASSIGN_OR_RETURN(std::string path, Resolve(raw));
  if (path.empty()) return std::nullopt;
  const bool named_before = taken_.contains(KeyOf(path));
  RETURN_IF_ERROR(AddFolders(path));
  if (named_before) return std::nullopt;
  return path;
}

}  // namespace muster
