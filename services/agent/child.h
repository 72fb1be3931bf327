// A child process with limits, for modules.
#ifndef MUSTER_SERVICES_AGENT_CHILD_H_
#define MUSTER_SERVICES_AGENT_CHILD_H_

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "services/common/base/subprocess.h"

namespace muster {

// The output of a plugin that is kept for error messages.
inline constexpr size_t kOutputTail = 8 * 1024;

// The variables of the agent's environment that its children get. No other variable is passed on,
// because some contain keys.
std::vector<std::string> ChildEnvironment();

// The reason for the end of a wait.
enum class ChildEnd { kExited, kTimedOut, kStopped, kEnough };

// Waits for the child. Stops it (SIGTERM, 10 s later SIGKILL) at the limit, on `stop`, or when
// `enough` returns true (called every 200 ms; may be empty).
ChildEnd AwaitChild(Subprocess& child, absl::Duration limit, const std::stop_token& stop,
                    const std::function<bool()>& enough, std::optional<ExitStatus>* exit);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_CHILD_H_
