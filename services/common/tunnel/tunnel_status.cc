#include "services/common/tunnel/tunnel_status.h"

#include <map>
#include <utility>

#include "services/common/base/mutex.h"

namespace muster {
namespace {

struct Statuses {
  Mutex mutex;
  std::map<std::string, TunnelStatus, std::less<>> all ABSL_GUARDED_BY(mutex);
};

Statuses& Process() {
  static auto* const statuses = new Statuses();  // used until the end of the process
  return *statuses;
}

}  // namespace

void SetTunnelStatus(const std::string& name, std::optional<TunnelStatus> status) {
  Statuses& process = Process();
  MutexLock lock(process.mutex);
  if (status) {
    process.all.insert_or_assign(name, *std::move(status));
  } else {
    process.all.erase(name);
  }
}

std::optional<TunnelStatus> FindTunnelStatus(std::string_view text) {
  const size_t begin = text.find(kTunnelName);
  if (begin == std::string_view::npos) return std::nullopt;
  size_t end = begin + kTunnelName.size();
  while (end < text.size() &&
         ((text[end] >= '0' && text[end] <= '9') || (text[end] >= 'a' && text[end] <= 'f'))) {
    ++end;
  }
  Statuses& process = Process();
  MutexLock lock(process.mutex);
  const auto found = process.all.find(text.substr(begin, end - begin));
  if (found == process.all.end()) return std::nullopt;
  return found->second;
}

}  // namespace muster
