#include "cli/commands/agent_commands.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "cli/exit_code.h"
#include "services/agent/agent.h"
#include "services/agent/agent_config.h"
#include "services/agent/attach/run_attached.h"
#include "services/agent/submit.h"
#include "services/common/base/status_macros.h"

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

void AddAttach(CommandLine& line, CLI::App& agent) {
  CLI::App& command = AddCommand(
      agent, {.name = "attach",
              .summary = "As a service: hang below a relay, and do what the fleet asks",
              .details = "Runs the commands that operators signed and policy.yaml in the folder "
                         "admits, and\ngathers for runs. It dials out only, also through the proxy "
                         "in https_proxy.\ndeploy/systemd has a unit for it.",
              .example = "muster agent attach\n"
                         "muster agent attach --dir /srv/node-1"});
  const auto options = std::make_shared<AttachOptions>();
  command
      .add_option("--dir,--folder", options->folder,
                  "What `muster node join` made (default: $MUSTER_HOME/node, for root "
                  "/var/lib/muster-node)")
      ->type_name(kFolderValue);
  command
      .add_option("--parallel", options->parallel,
                  "So many commands at a time, 1 to 256; more wait (default: 16)")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  SetAction(line, command, [options](Console&) -> absl::StatusOr<int> {
    if (options->folder.empty()) options->folder = DefaultNodeFolder(::getenv);
    RETURN_IF_ERROR(RunAttached(*options));
    return kExitOk;
  });
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
  AddAttach(line, command);
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
