#include "services/agent/child.h"

#include "services/common/base/clock.h"

namespace muster {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);
constexpr absl::Duration kStopGrace = absl::Seconds(10);

}  // namespace

std::vector<std::string> ChildEnvironment() {
  std::vector<std::string> environment = AllowListedEnvironment(
      {"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"});
  bool has_path = false;
  for (const std::string& entry : environment) has_path = has_path || entry.starts_with("PATH=");
  if (!has_path) {
    environment.push_back("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  }
  return environment;
}

ChildEnd AwaitChild(Subprocess& child, absl::Duration limit, const std::stop_token& stop,
                    const std::function<bool()>& enough, std::optional<ExitStatus>* exit) {
  const absl::Duration end = SystemClock().MonotonicNow() + limit;
  while (true) {
    *exit = child.Wait(kPoll);
    if (exit->has_value()) return ChildEnd::kExited;
    ChildEnd why = ChildEnd::kExited;
    if (stop.stop_requested()) {
      why = ChildEnd::kStopped;
    } else if (enough && enough()) {
      why = ChildEnd::kEnough;
    } else if (SystemClock().MonotonicNow() >= end) {
      why = ChildEnd::kTimedOut;
    } else {
      continue;
    }
    *exit = child.Stop(kStopGrace);
    return why;
  }
}

}  // namespace muster
