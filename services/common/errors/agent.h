// Generated from agent.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_AGENT_H_
#define MUSTER_SERVICES_COMMON_ERRORS_AGENT_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

// The agent.
namespace muster::errors {

// FAILED_PRECONDITION, TOOL_NOT_FOUND.
absl::Status ToolNotFound(std::string_view tool, std::string_view why, std::string_view next_step);
// FAILED_PRECONDITION, PLUGIN_FAILED.
absl::Status PluginFailed(std::string_view what, std::string_view how, std::string_view output);
// FAILED_PRECONDITION, PLUGIN_TIMED_OUT.
absl::Status PluginTimedOut(std::string_view what, absl::Duration limit, std::string_view output);
// FAILED_PRECONDITION, NO_RESULT.
absl::Status NoResult(std::string_view what, std::string_view output);
// FAILED_PRECONDITION, JOURNAL_EMPTY.
absl::Status JournalEmpty(std::string_view output);
// CANCELLED, INTERRUPTED.
absl::Status ModuleStopped();
// NOT_FOUND, MODULE_UNKNOWN.
absl::Status ModuleUnknown(std::string_view module);
// FAILED_PRECONDITION, NOT_FOR_AGENTS.
absl::Status NotForAgents();
// INVALID_ARGUMENT, INVALID_PLUGIN.
absl::Status InvalidConfigMapKey(std::string_view name);
// UNAVAILABLE, PORT_IN_USE.
absl::Status ProgressPortInUse(std::string_view address, int64_t port);
// ABORTED, ALREADY_ATTACHED.
absl::Status AlreadyAttached(std::string_view folder);
// NOT_FOUND, RESULT_NOT_KEPT.
absl::Status ResultNotKept(std::string_view plugin);
// FAILED_PRECONDITION, KEPT_RESULT_CHANGED.
absl::Status KeptResultChanged(std::string_view plugin, std::string_view why);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_AGENT_H_
