#include "cli/commands/command.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/output/format.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

// Continues a long command on further lines, before an option or a pipe.
std::string Continued(std::string line) {
  std::string out;
  std::string indent = "  ";
  while (indent.size() + line.size() > kHelpWidth) {
    const size_t limit = kHelpWidth - indent.size() - 2;  // for " \\"
    const size_t option = line.rfind(" --", limit);
    const size_t pipe = line.rfind(" | ", limit);
    const size_t end = option == std::string::npos ? pipe
                       : pipe == std::string::npos ? option
                                                   : std::max(option, pipe);
    if (end == std::string::npos || end == 0) break;
    absl::StrAppend(&out, indent, line.substr(0, end), " \\\n");
    line.erase(0, end + 1);
    indent = "    ";
  }
  return absl::StrCat(out, indent, line, "\n");
}

std::string Indent(const std::string& text) {
  std::string out;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&out, Continued(std::string(line)));
  }
  return out;
}

std::string FullName(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name()
                           : absl::StrCat(FullName(*parent), " ", command.get_name());
}

}  // namespace

CLI::App& AddCommand(CLI::App& parent, const CommandText& text) {
  CLI::App& command = *parent.add_subcommand(text.name, text.summary);
  std::string footer;
  for (const absl::string_view paragraph : absl::StrSplit(text.details, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&footer, WrapText(ToStd(paragraph), kHelpWidth), "\n");
  }
  if (!footer.empty()) footer += '\n';
  absl::StrAppend(&footer, "Example:\n", Indent(text.example));
  footer.pop_back();
  command.footer(footer);
  return command;
}

void SetAction(CommandLine& line, CLI::App& command, Action action) {
  command.callback([&line, &command, action = std::move(action)] {
    // CLI11 also calls it when a subcommand was named, after that one.
    if (!command.get_subcommands().empty()) return;
    line.command = FullName(command);
    line.action = action;
  });
}

void AddJsonOption(CommandLine& line, CLI::App& command) {
  command.add_flag("--json", line.json, "Print JSON: times in RFC 3339, sizes in bytes");
}

void AddColorOption(CommandLine& line, CLI::App& command) {
  AllowOnly(*command.add_option("--color", line.color,
                                "Color the states (default: auto, which means on a terminal unless "
                                "NO_COLOR is set)"),
            "auto|always|never");
}

void AddContextOption(CommandLine& line, CLI::App& command) {
  command
      .add_option("--context", line.context_file,
                  "The operator's context file: identity and fleet (default: $MUSTER_CONTEXT, then "
                  "$MUSTER_HOME/context.json)")
      ->type_name(kFileValue);
}

void AddNodeFolderOption(CLI::App& command, std::string& folder) {
  command
      .add_option("--dir", folder,
                  "The node's folder, which `muster node join` creates (default: $MUSTER_HOME/node "
                  "if MUSTER_HOME is set, for root /var/lib/muster-node, else "
                  "$XDG_STATE_HOME/muster-node, else ~/.local/state/muster-node)")
      ->type_name(kFolderValue);
}

void AllowOnly(CLI::Option& option, const std::string& choices) {
  const std::vector<std::string> words = absl::StrSplit(choices, '|');
  option.type_name(choices);
  option.check([words, choices](const std::string& value) {
    for (const std::string& word : words) {
      if (value == word) return std::string();
    }
    return absl::StrCat("\"", value, "\" is not one of ", choices);
  });
}

void AllowRange(CLI::Option& option, int64_t min, int64_t max) {
  option.check([min, max](const std::string& value) {
    int64_t number = 0;
    if (absl::SimpleAtoi(value, &number) && min <= number && number <= max) return std::string();
    return absl::StrCat(
        "\"", value, "\" is not a whole number from ", min,
        max == std::numeric_limits<int64_t>::max() ? "" : absl::StrCat(" to ", max));
  });
}

}  // namespace muster::cli
