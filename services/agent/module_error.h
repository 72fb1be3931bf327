// Errors of modules, whose texts operators read in the archive.
#ifndef MUSTER_SERVICES_AGENT_MODULE_ERROR_H_
#define MUSTER_SERVICES_AGENT_MODULE_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// TOOL_NOT_FOUND: the program does not exist or cannot be started (`cause`).
absl::Status ToolNotFoundError(std::string_view tool, const absl::Status& cause,
                               std::string_view next_step);

// PLUGIN_FAILED: `how` describes the end ("exit code 3"); includes the last output.
absl::Status PluginFailedError(std::string_view what, std::string_view how,
                               std::string_view output_tail);

// PLUGIN_TIMED_OUT.
absl::Status PluginTimedOutError(std::string_view what, absl::Duration limit,
                                 std::string_view output_tail);

// NO_RESULT: it succeeded but wrote nothing.
absl::Status NoResultError(std::string_view what, std::string_view output_tail);

// JOURNAL_EMPTY.
absl::Status JournalEmptyError(std::string_view output_tail);

// INTERRUPTED (CANCELLED): the agent was stopped.
absl::Status ModuleStoppedError();

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULE_ERROR_H_
