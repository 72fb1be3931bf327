#include "cli/app.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/argument_text.h"
#include "cli/commands/agent_commands.h"
#include "cli/commands/credentials_commands.h"
#include "cli/commands/dashboard_commands.h"
#include "cli/commands/exec_command.h"
#include "cli/commands/info_commands.h"
#include "cli/commands/job_commands.h"
#include "cli/commands/node_commands.h"
#include "cli/commands/operator_commands.h"
#include "cli/commands/relay_commands.h"
#include "cli/commands/results_commands.h"
#include "cli/commands/retrieve_commands.h"
#include "cli/commands/run_commands.h"
#include "cli/commands/service_commands.h"
#include "cli/commands/share_commands.h"
#include "cli/commands/status_commands.h"
#include "cli/commands/token_commands.h"
#include "cli/exit_code.h"
#include "cli/words.h"

namespace muster::cli {
namespace {

constexpr size_t kHelpColumn = 32;

constexpr char kFooter[] =
    "Example:\n"
    "  muster up\n"
    "  muster run --plugin hostfacts --node n1 --wait\n"
    "  muster results\n"
    "\n"
    "`muster COMMAND --help` shows an example of each command. Data goes to stdout, messages to\n"
    "stderr. The exit code is 0 for success, 1 for a local error, 2 for invalid arguments, and\n"
    "64 + N if a service answered with the gRPC status code N. docs/cli.md lists all exit codes.";

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
  return absl::StrCat("unknown command \"", name, "\"");
}

int ReportUsage(Console& console, const CommandLine& line, const CLI::ParseError& fault) {
  const CLI::App& named = InnermostCommand(line.app);
  const std::string command = FullName(named);
  const bool groups = !named.get_subcommands({}).empty();
  PrintError(console,
             UsageError(groups ? GroupError(named) : WithoutMarks(fault.what()),
                        absl::StrCat("`", command, " --help` shows its ",
                                     groups ? "commands." : "arguments and options.")),
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
  // CLI11 writes "NAME ..." for a list option, although each occurrence takes one value. It also
  // appends the excluded options; the description names them where a user has to know them.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string opts = Formatter::make_option_opts(option);
    opts.erase(std::min(opts.find(" Excludes:"), opts.size()));
    return IsListOption(*option) ? absl::StrReplaceAll(opts, {{" ...", ""}}) : opts;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const char* more = IsListOption(*option) ? "; may be repeated" : "";
    return WrapText(absl::StrCat(option->get_description(), more), kHelpWidth - kHelpColumn);
  }
};

int Finish(Console& console, const CommandLine& line, const absl::StatusOr<int>& outcome) {
  const absl::Status flushed = FinishOutput(console);
  if (!outcome.ok()) {
    PrintError(console, outcome.status(), line.command);
    return ExitCodeOf(outcome.status());
  }
  if (!flushed.ok()) {
    PrintError(console, flushed, line.command);
    return kExitError;
  }
  return *outcome;
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
  AddCredentialsCommands(*line);
  AddAgentCommands(*line);
  AddExecCommand(*line);
  AddJobCommands(*line);
  AddShareCommands(*line);
  AddTokenCommands(*line);
  AddNodeCommands(*line);
  AddRelayCommands(*line);
  AddOperatorCommands(*line);
  AddInfoCommands(*line);
  return line;
}

int RunProgram(int argc, const char* const* argv, Console& console) {
  const std::unique_ptr<CommandLine> line = MakeCommandLine();
  if (argc < 2) {  // no command
    console.err << Help(line->app);
    return kExitUsage;
  }
  try {
    ParseWords(line->app, {argv + 1, argv + argc});
  } catch (const CLI::CallForHelp&) {
    console.out << Help(InnermostCommand(line->app));
    return Finish(console, *line, kExitOk);
  } catch (const CLI::ParseError& fault) {
    return ReportUsage(console, *line, fault);
  }
  if (const absl::Status status = CheckArgumentText(line->app); !status.ok()) {
    return Finish(console, *line, status);
  }
  return Finish(console, *line, line->action(console));
}

}  // namespace muster::cli
