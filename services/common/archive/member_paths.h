// Safe paths for the members of a tar.
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

// Assigns paths and remembers them as hashes of 16 bytes. Not thread-safe.
class MemberPaths {
 public:
  explicit MemberPaths(const MemberPathLimits& limits) : limits_(limits) {}

  // Returns a safe path for the file `raw`. Fails with INVALID_ARGUMENT and the fault.
  absl::StatusOr<std::string> File(std::string_view raw);

  // Returns a safe path for a folder; nothing for the top folder ("./") or a repeated folder.
  absl::StatusOr<std::optional<std::string>> Folder(std::string_view raw);

 private:
  enum class Kind { kFile, kFolder };

  absl::StatusOr<std::string> Resolve(std::string_view raw) const;
  absl::Status AddFolders(std::string_view path);
  absl::Status Reserve(std::string_view path, Kind kind);

  const MemberPathLimits limits_;
  absl::flat_hash_map<std::string, Kind> taken_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_MEMBER_PATHS_H_
