#include "services/agent/module_error.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

std::string Tail(std::string_view output) {
  const absl::string_view text = absl::StripAsciiWhitespace(ToAbsl(output));
  if (text.empty()) return "; it printed nothing";
  return absl::StrCat("; its last output:\n", text);
}

}  // namespace

absl::Status ToolNotFoundError(std::string_view tool, const absl::Status& cause,
                               std::string_view next_step) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "TOOL_NOT_FOUND",
                   absl::StrCat(ToAbsl(tool), " cannot be run on this node: ", cause.message()),
                   next_step);
}

absl::Status PluginFailedError(std::string_view what, std::string_view how,
                               std::string_view output_tail) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "PLUGIN_FAILED",
                   absl::StrCat(ToAbsl(what), " failed with ", ToAbsl(how), Tail(output_tail)),
                   "Run it on that node by hand to see more.");
}

absl::Status PluginTimedOutError(std::string_view what, absl::Duration limit,
                                 std::string_view output_tail) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "PLUGIN_TIMED_OUT",
                   absl::StrCat(ToAbsl(what), " was stopped: it did not end within ",
                                absl::FormatDuration(limit), Tail(output_tail)),
                   "Find out what it waits for, or raise time_limit in the agent's configuration.");
}

absl::Status NoResultError(std::string_view what, std::string_view output_tail) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "NO_RESULT",
      absl::StrCat(ToAbsl(what), " ended well, but wrote no result", Tail(output_tail)),
      "Write the result below $RESULTS_DIR and its path into $RESULTS_DIR/done.");
}

absl::Status JournalEmptyError(std::string_view output_tail) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "JOURNAL_EMPTY",
                   absl::StrCat("this machine has no journal that can be read", Tail(output_tail)),
                   "Run systemd-journald on it, and the agent as root or in the group "
                   "systemd-journal.");
}

absl::Status ModuleStoppedError() {
  return MakeError(absl::StatusCode::kCancelled, "INTERRUPTED",
                   "asked to stop before there was a result",
                   "Start again with the same configuration.");
}

}  // namespace muster
