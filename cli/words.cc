#include "cli/words.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "cli/commands/command.h"

namespace muster::cli {
namespace {

// Precedes each argument, so that CLI11 treats it neither as an option nor as a command nor as a
// list.
constexpr char kMark = '\x01';

std::string Marked(const std::string& argument) { return kMark + argument; }

std::string WithoutMark(std::string argument) {
  if (!argument.empty() && argument.front() == kMark) argument.erase(0, 1);
  return argument;
}

void PrepareOptions(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      option->transform(WithoutMark);
    } else {
      option->allow_extra_args(false);
    }
  }
  for (CLI::App* inner : app.get_subcommands({})) PrepareOptions(*inner);
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* inner : app.get_subcommands({})) {
    if (inner->check_name(name)) return inner;
  }
  return nullptr;
}

// Returns false for options, known or not. CLI11 treats "-", "-5" and "---" as plain words.
bool IsPlain(const CLI::App& command, const std::string& word) {
  std::string name;
  std::string value;
  if (CLI::detail::split_long(word, name, value)) return false;
  if (!CLI::detail::split_short(word, name, value)) return true;
  return absl::ascii_isdigit(name.front()) && command.get_option_no_throw("-" + name) == nullptr;
}

// Returns true if `word` is not the value of `option`: "--", and the name of an option of `command`
// unless the value is free text.
bool IsNoValue(const CLI::App& command, const CLI::Option& option, const std::string& word) {
  if (word == "--") return true;
  if (word.size() < 2 || word.front() != '-' || option.get_type_name() == kTextValue) return false;
  return command.get_option_no_throw(word.substr(0, word.find('='))) != nullptr;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// A word that is an option with a value.
struct ValueOption {
  const CLI::Option* option;
  std::string name;                  // with the flags before it: "-wn"
  std::optional<std::string> value;  // if the word contains it
};

// Returns nothing for flags and for words that CLI11 rejects.
std::optional<ValueOption> FindValueOption(const CLI::App& command, const std::string& word) {
  if (word.starts_with("--")) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr || !TakesValue(*option)) return std::nullopt;
    ValueOption found{.option = option, .name = name, .value = std::nullopt};
    if (equals != std::string::npos) found.value = word.substr(equals + 1);
    return found;
  }
  for (size_t end = 2; end <= word.size(); ++end) {
    const CLI::Option* option = command.get_option_no_throw({'-', word[end - 1]});
    if (option == nullptr) return std::nullopt;
    if (!TakesValue(*option)) continue;
    ValueOption found{.option = option, .name = word.substr(0, end), .value = std::nullopt};
    if (end < word.size()) found.value = word.substr(end);
    return found;
  }
  return std::nullopt;
}

// Returns true for "," where values are separated by commas.
bool IsEmptyList(const CLI::Option& option, const std::string& value) {
  const char delimiter = option.get_delimiter();
  return delimiter != '\0' && !value.empty() &&
         value.find_first_not_of(delimiter) == std::string::npos;
}

// Passes each value to CLI11 as a separate word, and marks arguments. If a value is missing, the
// words end after the option's name: only then does CLI11 report it.
std::vector<std::string> MarkArguments(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> marked;
  const CLI::App* command = &app;
  bool options_ended = false;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (options_ended) {
      marked.push_back(Marked(*word));
    } else if (*word == "--") {
      options_ended = true;
    } else if (const CLI::App* inner = FindCommand(*command, *word)) {
      command = inner;
      marked.push_back(*word);
    } else if (IsPlain(*command, *word)) {
      marked.push_back(Marked(*word));
      options_ended = command->get_positionals_at_end();
    } else if (const auto found = FindValueOption(*command, *word)) {
      marked.push_back(found->name);
      std::optional<std::string> value = found->value;
      if (!value && std::next(word) != words.end() &&
          !IsNoValue(*command, *found->option, *std::next(word))) {
        value = *++word;
      }
      if (!value || IsEmptyList(*found->option, *value)) return marked;
      marked.push_back(*std::move(value));
    } else {
      marked.push_back(*word);
    }
  }
  return marked;
}

}  // namespace

void ParseWords(CLI::App& app, const std::vector<std::string>& words) {
  PrepareOptions(app);
  std::vector<std::string> marked = MarkArguments(app, words);
  std::reverse(marked.begin(), marked.end());  // CLI11 takes them from the back
  app.parse(std::move(marked));
}

std::string WithoutMarks(std::string text) {
  std::erase(text, kMark);
  return text;
}

}  // namespace muster::cli
