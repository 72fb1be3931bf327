#include "cli/argument_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands/command.h"
#include "cli/exit_code.h"
#include "cli/words.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"

namespace muster::cli {
namespace {

bool MayBeAnyBytes(const CLI::App& command, const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == kFileValue || type == kFolderValue) return true;
  return command.get_name() == "submit" &&
         (option.get_name() == "FILE" || option.get_name() == "--error");
}

bool MayBeEmpty(const CLI::Option& option) {
  return option.get_type_name() == kTextValue || option.get_name() == "--legacy-host";
}

// Returns true if `value`, at `position`, is an argument of the program of `exec`.
bool IsProgramArgument(const CLI::App& command, const CLI::Option& option, size_t position) {
  return command.get_positionals_at_end() && option.get_positional() && position > 0;
}

absl::Status CheckNotEmpty(const CLI::App& command, const CLI::Option& option) {
  if (MayBeEmpty(option)) return absl::OkStatus();
  for (size_t i = 0; i < option.results().size(); ++i) {
    if (!option.results()[i].empty() || IsProgramArgument(command, option, i)) continue;
    return UsageError(absl::StrCat("the value of ", option.get_name(), " is empty"),
                      "Give a value. If a script calls the program: check that the variable is "
                      "set.");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckArgumentText(const CLI::App& parsed) {
  for (const CLI::Option* option : parsed.get_options()) {
    RETURN_IF_ERROR(CheckNotEmpty(parsed, *option));
    if (MayBeAnyBytes(parsed, *option)) continue;
    for (const std::string& value : option->results()) {
      if (IsUtf8(value)) continue;
      return UsageError(absl::StrCat("the value of ", option->get_name(), " is not UTF-8: \"",
                                     WithoutMarks(CleanUtf8(value)), "\""),
                        "Write it in UTF-8; `locale` shows the encoding of this terminal.");
    }
  }
  for (const CLI::App* command : parsed.get_subcommands()) {
    RETURN_IF_ERROR(CheckArgumentText(*command));
  }
  return absl::OkStatus();
}

}  // namespace muster::cli
