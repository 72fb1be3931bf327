// All three scripts work in the same way. They follow the words before the cursor to find the
// command. If the option before the cursor takes a value, they offer its values, else the commands
// and options of the command. A path names a command: "" for the program, "/operator/add".
#include "cli/commands/completion.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/commands/command.h"

namespace muster::cli {
namespace {

struct OptionInfo {
  std::vector<std::string> names;  // with their dashes
  std::string summary;
  bool takes_value = false;
  bool takes_file = false;
  std::vector<std::string> choices;
};

struct CommandInfo {
  std::string path;
  std::string name;
  std::string summary;
  std::vector<CommandInfo> commands;
  std::vector<OptionInfo> options;
  std::vector<std::string> choices;  // of its first argument
};

bool IsFile(const CLI::Option& option) {
  return option.get_type_name() == kFileValue || option.get_type_name() == kFolderValue;
}

std::vector<std::string> Choices(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find('|') == std::string::npos) return {};
  return absl::StrSplit(type, '|');
}

OptionInfo Describe(const CLI::Option& option) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  info.summary = option.get_description();
  info.takes_value = option.get_items_expected_max() > 0;
  info.takes_file = IsFile(option);
  info.choices = Choices(option);
  return info;
}

CommandInfo Describe(const CLI::App& app, const std::string& path) {
  CommandInfo info{.path = path, .name = app.get_name(), .summary = app.get_description()};
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) {
      info.options.push_back(Describe(*option));
    } else if (info.choices.empty()) {
      info.choices = Choices(*option);
    }
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;  // hidden
    info.commands.push_back(Describe(*command, absl::StrCat(path, "/", command->get_name())));
  }
  return info;
}

template <typename Visitor>
void Visit(const CommandInfo& command, const Visitor& visitor) {
  visitor(command);
  for (const CommandInfo& inner : command.commands) Visit(inner, visitor);
}

std::string AllPaths(const CommandInfo& root) {
  std::vector<std::string> paths;
  Visit(root, [&](const CommandInfo& command) {
    if (!command.path.empty()) paths.push_back(command.path);
  });
  return absl::StrJoin(paths, "|");
}

std::vector<std::string> Words(const CommandInfo& command) {
  std::vector<std::string> words;
  for (const CommandInfo& inner : command.commands) words.push_back(inner.name);
  words.insert(words.end(), command.choices.begin(), command.choices.end());
  for (const OptionInfo& option : command.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return words;
}

// Returns the lines of a `case` over "PATH,OPTION", for bash and zsh. `files` completes file names;
// the `choices_` texts enclose a list of words.
std::string ValueCases(const CommandInfo& root, const std::string& files,
                       const std::string& choices_before, const std::string& choices_after) {
  std::string cases;
  Visit(root, [&](const CommandInfo& command) {
    for (const OptionInfo& option : command.options) {
      if (!option.takes_value) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) {
        patterns.push_back(absl::StrCat("\"", command.path, ",", name, "\""));
      }
      const std::string does =
          option.takes_file ? files
          : option.choices.empty()
              ? ":"
              : absl::StrCat(choices_before, absl::StrJoin(option.choices, " "), choices_after);
      absl::StrAppend(&cases, "    ", absl::StrJoin(patterns, "|"), ") ", does, "; return ;;\n");
    }
  });
  return cases;
}

std::string Bash(const CommandInfo& root) {
  std::string words;
  Visit(root, [&](const CommandInfo& command) {
    absl::StrAppend(&words, "    \"", command.path, "\") words=\"",
                    absl::StrJoin(Words(command), " "), "\" ;;\n");
  });
  return absl::StrReplaceAll(
      R"(# Completion of @NAME@ for bash. Load it with: source <(@NAME@ completion bash)
_@NAME@() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" path="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path/${COMP_WORDS[i]}" in
    @PATHS@) path="$path/${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path,$prev" in
@VALUES@  esac
  case "$path" in
@WORDS@  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _@NAME@ @NAME@
)",
      {{"@NAME@", root.name},
       {"@PATHS@", AllPaths(root)},
       {"@VALUES@", ValueCases(root, "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")",
                               "mapfile -t COMPREPLY < <(compgen -W \"", "\" -- \"$cur\")")},
       {"@WORDS@", words}});
}

// Returns an item for zsh's _describe: 'word:summary'.
std::string ZshItem(const std::string& word, const std::string& summary) {
  return absl::StrCat(" '", word, ":",
                      absl::StrReplaceAll(summary, {{"'", "'\\''"}, {"\\", "\\\\"}, {":", "\\:"}}),
                      "'");
}

std::string Zsh(const CommandInfo& root) {
  std::string items;
  Visit(root, [&](const CommandInfo& command) {
    absl::StrAppend(&items, "    \"", command.path, "\") items=(");
    for (const CommandInfo& inner : command.commands) {
      items += ZshItem(inner.name, inner.summary);
    }
    for (const std::string& choice : command.choices) items += ZshItem(choice, choice);
    for (const OptionInfo& option : command.options) {
      for (const std::string& name : option.names) items += ZshItem(name, option.summary);
    }
    absl::StrAppend(&items, " ) ;;\n");
  });
  return absl::StrReplaceAll(
      R"(#compdef @NAME@
# Completion of @NAME@ for zsh. Put it into a folder of $fpath as _@NAME@.
_@NAME@() {
  local path_="" i
  local -a items
  for ((i = 2; i < CURRENT; i++)); do
    case "$path_/${words[i]}" in
    @PATHS@) path_="$path_/${words[i]}" ;;
    esac
  done
  case "$path_,${words[CURRENT-1]}" in
@VALUES@  esac
  case "$path_" in
@ITEMS@  esac
  _describe '@NAME@' items
}
if [ "$funcstack[1]" = "_@NAME@" ]; then _@NAME@ "$@"; else compdef _@NAME@ @NAME@; fi
)",
      {{"@NAME@", root.name},
       {"@PATHS@", AllPaths(root)},
       {"@VALUES@", ValueCases(root, "_files", "compadd ", "")},
       {"@ITEMS@", items}});
}

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string FishOption(const OptionInfo& option) {
  std::string line;
  for (const std::string& name : option.names) {
    const bool is_long = name.rfind("--", 0) == 0;
    absl::StrAppend(&line, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
  }
  if (option.takes_value) line += " -r";
  if (option.takes_file) line += " -F";
  if (!option.choices.empty()) {
    absl::StrAppend(&line, " -a ", FishQuoted(absl::StrJoin(option.choices, " ")));
  }
  return absl::StrCat(line, " -d ", FishQuoted(option.summary));
}

std::string Fish(const CommandInfo& root) {
  std::string lines;
  Visit(root, [&](const CommandInfo& command) {
    const std::string start = absl::StrCat("complete -c ", root.name, " -n '__", root.name,
                                           "_is \"", command.path, "\"'");
    for (const CommandInfo& inner : command.commands) {
      absl::StrAppend(&lines, start, " -a ", inner.name, " -d ", FishQuoted(inner.summary), "\n");
    }
    for (const std::string& choice : command.choices) {
      absl::StrAppend(&lines, start, " -a ", choice, "\n");
    }
    for (const OptionInfo& option : command.options) {
      absl::StrAppend(&lines, start, FishOption(option), "\n");
    }
  });
  return absl::StrReplaceAll(
      R"(# Completion of @NAME@ for fish. Load it with: @NAME@ completion fish | source
function __@NAME@_is
  set -l path ""
  for word in (commandline -opc)[2..]
    switch "$path/$word"
      case @PATHS@
        set path "$path/$word"
    end
  end
  test "$path" = "$argv[1]"
end
complete -c @NAME@ -f
@LINES@)",
      {{"@NAME@", root.name},
       {"@PATHS@", absl::StrReplaceAll(AllPaths(root), {{"|", " "}})},
       {"@LINES@", lines}});
}

}  // namespace

std::string CompletionScript(const CLI::App& app, Shell shell) {
  const CommandInfo root = Describe(app, "");
  switch (shell) {
    case Shell::kBash:
      return Bash(root);
    case Shell::kZsh:
      return Zsh(root);
    case Shell::kFish:
      return Fish(root);
  }
  return "";
}

}  // namespace muster::cli
