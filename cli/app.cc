#include "cli/app.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/argument_text.h"
#include "cli/commands/agent_commands.h"
#include "cli/commands/audit_commands.h"
#include "cli/commands/backup_commands.h"
#include "cli/commands/conformance_commands.h"
#include "cli/commands/credentials_commands.h"
#include "cli/commands/dashboard_commands.h"
#include "cli/commands/deploy_command.h"
#include "cli/commands/deployment_commands.h"
#include "cli/commands/exec_command.h"
#include "cli/commands/info_commands.h"
#include "cli/commands/job_commands.h"
#include "cli/commands/node_commands.h"
#include "cli/commands/operator_commands.h"
#include "cli/commands/relay_commands.h"
#include "cli/commands/results_commands.h"
#include "cli/commands/retention_commands.h"
#include "cli/commands/retrieve_commands.h"
#include "cli/commands/run_commands.h"
#include "cli/commands/secret_commands.h"
#include "cli/commands/service_commands.h"
#include "cli/commands/share_commands.h"
#include "cli/commands/status_commands.h"
#include "cli/commands/template_commands.h"
#include "cli/commands/token_commands.h"
#include "cli/commands/verify_command.h"
#include "cli/commands/workspace_commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/format.h"
#include "cli/rpc/session.h"
#include "cli/supervisor/home.h"
#include "cli/words.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/errors/cli.h"
#include "services/common/rpc/connection_error.h"

namespace muster::cli {
namespace {

constexpr size_t kHelpColumn = 32;

constexpr char kFooter[] =
    "Example:\n"
    "  muster up\n"
    "  muster run --plugin hostfacts --node n1 --wait\n"
    "  muster results\n"
    "\n"
    "`muster COMMAND --help` shows an example of each command. Data goes to stdout,\n"
    "messages to stderr. Exit codes: 0 success, 1 error, 2 invalid arguments, 64 + N\n"
    "if a service answered with the gRPC status code N. docs/cli.md lists all of\n"
    "them.";

// Returns the innermost command of the command line, for messages.
const CLI::App& InnermostCommand(const CLI::App& app) {
  const std::vector<CLI::App*> inner = const_cast<CLI::App&>(app).get_subcommands();
  return inner.empty() ? app : InnermostCommand(*inner.back());
}

std::string FullName(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : FullName(*app.get_parent()) + " " + app.get_name();
}

// Returns why the words after `group`, which only groups commands, are not a command.
std::string GroupError(const CLI::App& group) {
  const std::vector<std::string> unknown = group.remaining();
  if (unknown.empty()) return "a command is missing";
  const std::string name = WithoutMarks(unknown.front());
  for (const CLI::App* inner : group.get_subcommands({})) {
    if (inner->check_name(name)) return "a command is missing before \"--\"";
  }
  std::vector<std::string> known;
  for (const CLI::App* inner : group.get_subcommands({})) {
    if (!inner->get_group().empty()) known.push_back(inner->get_name());
  }
  return absl::StrCat("unknown command \"", Printable(name), "\"", Suggestion(name, known));
}

// Returns why the first word of `unexpected` is neither an option nor an argument of `command`.
std::string ExtraWordError(const CLI::App& command, const std::vector<std::string>& unexpected) {
  const std::string word = unexpected.empty() ? "" : WithoutMarks(unexpected.front());
  if (!absl::StartsWith(word, "-") || word != unexpected.front()) {
    return absl::StrCat("unexpected argument \"", Printable(word), "\"");
  }
  const std::string option_name = word.substr(0, word.find('='));
  // Without the dashes, which any two options have in common.
  const size_t dashes = std::min(option_name.find_first_not_of('-'), option_name.size());
  const std::string name = option_name.substr(dashes);
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& long_name : option->get_lnames()) known.push_back(long_name);
  }
  const std::string suggestion = Suggestion(name, known);
  return absl::StrCat("unknown option ", Printable(option_name),
                      absl::StrReplaceAll(suggestion, {{"did you mean ", "did you mean --"}}));
}

// Returns the fault in the words of this program.
std::string FaultText(const CommandLine& line, const CLI::App& command,
                      const CLI::ParseError& fault) {
  if (fault.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
    return ExtraWordError(command, line.app.remaining(true));
  std::string text = WithoutMarks(fault.what());
  const std::string option = text.substr(0, text.find(':'));
  if (absl::StrContains(text, "disallowed flag override")) {
    return absl::StrCat("--", text.substr(0, text.find(' ')), " takes no value");
  }
  if (absl::EndsWith(text, " missing")) return absl::StrCat(option, ": a value is missing");
  if (absl::StrContains(text, ": At Most "))
    return absl::StrCat(option, " is given more than once");
  // The name of an argument, such as RUN, stays as it is.
  const bool is_name = text.size() > 1 && absl::ascii_isupper(text[1]);
  if (!text.empty() && !is_name) text.front() = absl::ascii_tolower(text.front());
  return text;
}

bool GroupsCommands(const CLI::App& command) { return !command.get_subcommands({}).empty(); }

int ReportUsage(Console& console, const CLI::App& named, const std::string& text) {
  const std::string command = FullName(named);
  PrintError(console,
             UsageError(text, absl::StrCat(
                                  "`", command, " --help` shows its ",
                                  GroupsCommands(named) ? "commands." : "arguments and options.")),
             command);
  return kExitUsage;
}

std::string Help(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return absl::StrCat(
      absl::StripTrailingAsciiWhitespace(command.help(parent == nullptr ? "" : FullName(*parent))),
      "\n");
}

bool IsListOption(const CLI::Option& option) {
  return option.nonpositional() && option.get_items_expected_max() > 1;
}

// Formats help: blank lines between the parts, and lines that fit the terminal.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(kHelpColumn);
    label("REQUIRED", "(required)");
    label("Positionals", "Arguments");
  }
  std::string make_description(const CLI::App* app) const override {
    return Formatter::make_description(app) + "\n";
  }
  // Omits what CLI11 adds for itself: the type of an argument, which repeats its name, "..." after
  // an option that takes one value each time, checks and exclusions.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string opts;
    if (option->nonpositional() && option->get_items_expected_max() > 0) {
      absl::StrAppend(&opts, " ", option->get_type_name());
    }
    if (option->get_positional() && option->get_items_expected_max() > 1) opts += " ...";
    if (option->get_required()) absl::StrAppend(&opts, " ", get_label("REQUIRED"));
    return opts;
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::string name = "  " + command->get_display_name(true);
    name.resize(std::max(name.size() + 1, kHelpColumn), ' ');
    const std::string margin = "\n" + std::string(kHelpColumn, ' ');
    return absl::StrCat(
        name,
        absl::StrReplaceAll(WrapText(command->get_description(), kHelpWidth - kHelpColumn),
                            {{"\n", margin}}),
        "\n");
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const char* more = IsListOption(*option) ? "; may be repeated" : "";
    return WrapText(absl::StrCat(option->get_description(), more), kHelpWidth - kHelpColumn);
  }
};

// Returns the words that print the help of the command that `words` begin with. Its arguments are
// dropped: after the program of `muster exec`, --help would be one of them, and the program would
// run.
std::vector<std::string> HelpOf(const CLI::App& app, std::vector<std::string> words) {
  const CLI::App* command = &app;
  size_t names = 0;
  for (; names < words.size() && GroupsCommands(*command); ++names) {
    const auto commands = command->get_subcommands({});
    const auto found = std::ranges::find(commands, words[names], &CLI::App::get_name);
    if (found == commands.end()) return words;  // an unknown command
    command = *found;
  }
  words.resize(names);
  words.push_back("--help");
  return words;
}

// Translates the words that other programs understand too: `help [COMMAND...]`, --version and -v.
std::vector<std::string> WithoutAliases(const CLI::App& app, std::vector<std::string> words) {
  if (words.front() == "--version" || words.front() == "-v") words.front() = "version";
  if (words.front() != "help") return words;
  words.erase(words.begin());
  return HelpOf(app, std::move(words));
}

// Returns a usage error if an option precedes the command.
absl::Status CheckFirstWord(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string& first = words.front();
  if (first.size() < 2 || first.front() != '-' || first == "--" ||
      app.get_option_no_throw(first) != nullptr) {
    return absl::OkStatus();
  }
  return UsageError(
      absl::StrCat("option ", Printable(WithoutMarks(first)), " precedes the command"),
      "Write the options after the command, such as: muster runs --json.");
}

// Returns true if the command uses an operator's context, and its services are those of `muster up`
// on this machine.
bool UsesLocalServices(const CommandLine& line) {
  if (InnermostCommand(line.app).get_option_no_throw("--context") == nullptr) return false;
  const auto home = supervisor::HomeFromEnvironment();
  const auto context = ContextFile(line.context_file);
  return home.ok() && context.ok() && *context == home->ContextFile() &&
         ::access(supervisor::ConfigFile(*home, "aggregator").c_str(), F_OK) == 0;
}

// Returns the error with a next step that starts local services, if they do not run.
absl::Status WithLocalNextStep(const CommandLine& line, const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  const bool unreachable = reason == "UNREACHABLE" || reason == "GATEWAY_UNREACHABLE";
  if (!unreachable || !IsRefusedByThisMachine(ToStd(status.message())) ||
      !UsesLocalServices(line)) {
    return status;
  }
  return FromService(errors::LocalServicesUnreachable(ToStd(status.message())), SubjectOf(status));
}

int Finish(Console& console, const CommandLine& line, const absl::StatusOr<int>& outcome) {
  const absl::Status flushed = FinishOutput(console);
  // Help is printed without a command.
  const std::string command = line.command.empty() ? line.app.get_name() : line.command;
  if (absl::IsCancelled(outcome.status()) && Interrupted()) {  // its call was ended
    PrintMessage(console, "\nInterrupted.");
    return kExitInterrupted;
  }
  if (!outcome.ok()) {
    PrintError(console, WithLocalNextStep(line, outcome.status()), command);
    return ExitCodeOf(outcome.status());
  }
  if (!flushed.ok()) {
    PrintError(console, flushed, command);
    return kExitError;
  }
  return *outcome;
}

// Makes `--json=no` an error.
void RefuseValuesOfFlags(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0) option->disable_flag_override();
  }
  for (CLI::App* inner : command.get_subcommands({})) RefuseValuesOfFlags(*inner);
}

}  // namespace

std::unique_ptr<CommandLine> MakeCommandLine() {
  auto line = std::make_unique<CommandLine>();
  line->app.name("muster");
  line->app.footer(kFooter);
  line->app.require_subcommand(1);
  line->app.formatter(std::make_shared<HelpFormatter>());
  line->app.set_help_flag("-h,--help", "Show this help");
  AddServiceCommands(*line);
  AddRunCommand(*line);
  AddStatusCommands(*line);
  AddDashboardCommand(*line);
  AddResultsCommands(*line);
  AddRetrieveCommands(*line);
  AddRunsCommands(*line);
  AddRetentionCommands(*line);
  AddVerifyCommand(*line);
  AddBackupCommands(*line);
  AddCredentialsCommands(*line);
  AddAgentCommands(*line);
  AddExecCommand(*line);
  AddJobCommands(*line);
  AddTemplateCommands(*line);
  AddDeployCommand(*line);
  AddSecretCommands(*line);
  AddWorkspaceCommands(*line);
  AddDeploymentCommands(*line);
  AddConformanceCommands(*line);
  AddShareCommands(*line);
  AddTokenCommands(*line);
  AddNodeCommands(*line);
  AddRelayCommands(*line);
  AddOperatorCommands(*line);
  AddAuditCommand(*line);
  AddInfoCommands(*line);
  RefuseValuesOfFlags(line->app);
  return line;
}

int RunProgram(int argc, const char* const* argv, Console& console) {
  const std::unique_ptr<CommandLine> line = MakeCommandLine();
  if (argc < 2) {  // no command
    console.err << Help(line->app);
    return kExitUsage;
  }
  const std::vector<std::string> words = WithoutAliases(line->app, {argv + 1, argv + argc});
  if (const absl::Status status = CheckFirstWord(line->app, words); !status.ok()) {
    return Finish(console, *line, status);
  }
  try {
    ParseWords(line->app, words);
  } catch (const CLI::CallForHelp&) {
    const CLI::App& named = InnermostCommand(line->app);
    if (GroupsCommands(named) && !named.remaining().empty()) {  // such as `stauts --help`
      return ReportUsage(console, named, GroupError(named));
    }
    console.out << Help(named);
    return Finish(console, *line, kExitOk);
  } catch (const CLI::ParseError& fault) {
    const CLI::App& named = InnermostCommand(line->app);
    return ReportUsage(console, named,
                       GroupsCommands(named) ? GroupError(named) : FaultText(*line, named, fault));
  }
  if (const absl::Status status = CheckArgumentText(line->app); !status.ok()) {
    return Finish(console, *line, status);
  }
  SetColor(console, line->color);
  return Finish(console, *line, line->action(console));
}

}  // namespace muster::cli
