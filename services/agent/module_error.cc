#include "services/agent/module_error.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/errors/agent.h"

namespace muster {
namespace {

std::string Tail(std::string_view output) {
  const absl::string_view text = absl::StripAsciiWhitespace(ToAbsl(output));
  if (text.empty()) return "; no output";
  return absl::StrCat("; last output:\n", text);
}

}  // namespace

absl::Status ToolNotFoundError(std::string_view tool, const absl::Status& cause,
                               std::string_view next_step) {
  return errors::ToolNotFound(tool, ToStd(cause.message()), next_step);
}

absl::Status PluginFailedError(std::string_view what, std::string_view how,
                               std::string_view output_tail) {
  return errors::PluginFailed(what, how, Tail(output_tail));
}

absl::Status PluginTimedOutError(std::string_view what, absl::Duration limit,
                                 std::string_view output_tail) {
  return errors::PluginTimedOut(what, limit, Tail(output_tail));
}

absl::Status NoResultError(std::string_view what, std::string_view output_tail) {
  return errors::NoResult(what, Tail(output_tail));
}

absl::Status JournalEmptyError(std::string_view output_tail) {
  return errors::JournalEmpty(Tail(output_tail));
}

absl::Status ModuleStoppedError() { return errors::ModuleStopped(); }

}  // namespace muster
