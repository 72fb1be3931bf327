#include "services/agent/vault/peer_container.h"

#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr size_t kContainerId = 64;
constexpr size_t kMaxCgroups = size_t{64} << 10;

}  // namespace

bool IsCgroupOf(std::string_view cgroups, std::string_view container) {
  if (container.size() != kContainerId) return false;
  const std::string scope = absl::StrCat("-", ToAbsl(container), ".scope");
  for (const absl::string_view line : absl::StrSplit(ToAbsl(cgroups), '\n', absl::SkipEmpty())) {
    // "hierarchy:controllers:path"
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<absl::string_view> parts = absl::StrSplit(fields[2], '/');
    const bool is_inside = std::ranges::any_of(parts, [&](absl::string_view part) {
      return ToStd(part) == container || ToStd(part).ends_with(scope);
    });
    if (is_inside) return true;
  }
  return false;
}

bool IsPeerInContainer(int socket, std::string_view container) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return false;
  const auto cgroups = ReadFileBounded(absl::StrCat("/proc/", peer.pid, "/cgroup"), kMaxCgroups);
  return cgroups.ok() && IsCgroupOf(*cgroups, container);
}

}  // namespace muster
