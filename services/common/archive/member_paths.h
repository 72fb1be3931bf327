// The paths of a tar's members, made safe.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_MEMBER_PATHS_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_MEMBER_PATHS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

struct MemberPathLimits {
  int64_t max_entries = 0;
  size_t max_depth = 0;
  size_t max_name = 0;
  size_t max_path = 0;
};

// Remembers what was handed out, by a hash of 16 bytes each. Not thread-safe.
class MemberPaths {
 public:
  explicit MemberPaths(const MemberPathLimits& limits) : limits_(limits) {}

  // The safe path of the file called `raw`; INVALID_ARGUMENT says why there is none.
  absl::StatusOr<std::string> File(std::string_view raw);

  // The same of a folder; nothing if it is the top ("./") or was named before.
  absl::StatusOr<std::optional<std::string>> Folder(std::string_view raw);

 private:
  enum class Kind { kFile, kFolder };

  absl::StatusOr<std::string> Resolve(std::string_view raw) const;
  absl::Status AddFolders(std::string_view path);
  absl::Status Take(std::string_view path, Kind kind);

  const MemberPathLimits limits_;
  absl::flat_hash_map<std::string, Kind> taken_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_MEMBER_PATHS_H_
