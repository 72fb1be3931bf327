#include "cli/agent_commands.h"

#include <memory>
#include <string>

#include "cli/exit_code.h"
#include "services/agent/agent.h"
#include "services/agent/submit.h"

namespace muster::cli {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 committed, 2 wrong configuration, 10 the fleet was told why there is no\n"
    "result, 11 refused, 12 another content is committed, 13 the run has ended, 14 too late,\n"
    "15 interrupted.";

void AddConfigOption(CLI::App& command, std::string& file) {
  command
      .add_option("-c,--config", file,
                  "What `muster credentials export` wrote; the environment comes before it "
                  "(default: the environment alone)")
      ->type_name(kFileValue);
}

void AddAgent(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "agent",
       .summary = "On a node: gather or wait for one result, and deliver it",
       .details = std::string("What was gathered is kept until it is committed, over restarts of "
                              "this program too.\n") +
                  kExitCodes,
       .example = "muster agent --config node.json"});
  const auto options = std::make_shared<AgentOptions>();
  AddConfigOption(command, options->config_path);
  SetAction(line, command, [options](Console&) { return RunAgent(*options); });
}

void AddSubmit(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app, {.name = "submit",
                 .summary = "On a node: deliver a file, for a plugin that is a shell script",
                 .details = kExitCodes,
                 .example = "muster submit facts.json --config node.json\n"
                            "journalctl -o json | muster submit - --config node.json "
                            "--file-name journal.json\n"
                            "muster submit --error \"there is no journal\" --config node.json"});
  const auto options = std::make_shared<SubmitOptions>();
  command.add_option("FILE", options->file, "The file; - for stdin")->type_name("");
  command.add_option("--error", options->error_text, "Instead of a file: why there is no result")
      ->type_name("TEXT");
  command
      .add_option("--media-type", options->media_type,
                  "Such as application/json (default: by the file's name)")
      ->type_name("TYPE");
  command.add_option("--file-name", options->file_name, "Its name (default: the file's own)")
      ->type_name("NAME");
  AddConfigOption(command, options->config_path);
  SetAction(line, command, [options](Console&) -> absl::StatusOr<int> {
    if (options->file.empty() == options->error_text.empty()) {
      return UsageError("say what to deliver: exactly one of FILE and --error is needed",
                        "`muster submit --help` shows an example.");
    }
    return RunSubmit(*options);
  });
}

}  // namespace

void AddAgentCommands(CommandLine& line) {
  AddAgent(line);
  AddSubmit(line);
}

}  // namespace muster::cli
