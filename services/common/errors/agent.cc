// Generated from agent.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/agent.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status ToolNotFound(std::string_view tool, std::string_view why, std::string_view next_step) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "TOOL_NOT_FOUND",
                   absl::StrCat("cannot run ", ToAbsl(tool), " on this node: ", ToAbsl(why)),
                   next_step);
}

absl::Status PluginFailed(std::string_view what, std::string_view how, std::string_view output) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "PLUGIN_FAILED",
                   absl::StrCat(ToAbsl(what), " failed with ", ToAbsl(how), ToAbsl(output)),
                   "Run the same command on that node to see more.");
}

absl::Status PluginTimedOut(std::string_view what, absl::Duration limit, std::string_view output) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "PLUGIN_TIMED_OUT",
                   absl::StrCat(ToAbsl(what), " did not finish within ", absl::FormatDuration(limit), " and was stopped", ToAbsl(output)),
                   "Find out what it waits for, or raise time_limit in the configuration of the agent.");
}

absl::Status NoResult(std::string_view what, std::string_view output) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_RESULT",
                   absl::StrCat(ToAbsl(what), " succeeded but wrote no result", ToAbsl(output)),
                   "Write the result into $RESULTS_DIR and its path into $RESULTS_DIR/done.");
}

absl::Status JournalEmpty(std::string_view output) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "JOURNAL_EMPTY",
                   absl::StrCat("journalctl found no readable journal", ToAbsl(output)),
                   "Run systemd-journald on this node, and run the agent as root or in the group systemd-journal.");
}

absl::Status ModuleStopped() {
  return MakeError(absl::StatusCode::kCancelled, "INTERRUPTED",
                   "the agent was stopped before the result was complete",
                   "Start again with the same configuration.");
}

absl::Status ModuleUnknown(std::string_view module) {
  return MakeError(absl::StatusCode::kNotFound, "MODULE_UNKNOWN",
                   absl::StrCat("built-in module \"", ToAbsl(module), "\" not found in this agent"),
                   "Give the plugin a command, or update the agent.");
}

absl::Status NotForAgents() {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_FOR_AGENTS",
                   "the plugin has an image, so the sidecar of its container delivers the result",
                   "Run the container with a sidecar that has a credential of the run (muster credentials export).");
}

absl::Status InvalidConfigMapKey(std::string_view name) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PLUGIN",
                   absl::StrCat("config-map: \"", ToAbsl(name), "\" is not a file name"),
                   "Correct the definition; docs/plugins.md describes it.");
}

absl::Status ProgressPortInUse(std::string_view address, int64_t port) {
  return MakeError(absl::StatusCode::kUnavailable, "PORT_IN_USE",
                   absl::StrCat("cannot listen on ", ToAbsl(address), ":", port),
                   "Stop the program that uses the port, or set progress_port to another port.");
}

absl::Status AlreadyAttached(std::string_view folder) {
  return MakeError(absl::StatusCode::kAborted, "ALREADY_ATTACHED",
                   absl::StrCat("another process is attached as the node of ", ToAbsl(folder)),
                   "Keep that process, or stop it first.");
}

absl::Status ResultNotKept(std::string_view plugin) {
  return MakeError(absl::StatusCode::kNotFound, "RESULT_NOT_KEPT",
                   absl::StrCat("the node keeps no copy of its result of ", ToAbsl(plugin)),
                   "Submit the same content again on the node, or restore the result from a backup.");
}

absl::Status KeptResultChanged(std::string_view plugin, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "KEPT_RESULT_CHANGED",
                   absl::StrCat("the kept copy of the result of ", ToAbsl(plugin), " is not the committed content: ", ToAbsl(why)),
                   "Submit the committed content again on the node, or restore the result from a backup.");
}

}  // namespace muster::errors
