#include "cli/commands/agent_commands.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/agent/agent.h"
#include "services/agent/agent_config.h"
#include "services/agent/attach/run_attached.h"
#include "services/agent/submit.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/text_values.h"

namespace muster::cli {
namespace {

constexpr uint64_t kMostKeptBytes = uint64_t{1} << 50;

constexpr char kExitCodes[] =
    "Exit codes: 0 committed, 2 invalid configuration, 10 delivered as an error result, "
    "11 refused, 12 a different result is committed, 13 the run is sealed or cancelled, "
    "14 too late, 15 interrupted, 16 spooled by a relay.";

void AddConfigOption(CLI::App& command, std::string& file) {
  command
      .add_option("-c,--config", file,
                  "The file from `muster credentials export`; the environment overrides it "
                  "(default: only the environment)")
      ->type_name(kFileValue);
}

struct KeptArguments {
  std::string bytes = "1GiB";
  std::string age = "24h";
};

absl::Status SetKept(const KeptArguments& arguments, AttachOptions& options) {
  const auto bytes = ParseByteSize(arguments.bytes);
  if (!bytes || *bytes > kMostKeptBytes) {
    return UsageError(absl::StrCat("--kept-bytes: \"", arguments.bytes, "\" is not a size"),
                      "Write a number with a unit, such as 1GiB, or 0 to keep nothing.");
  }
  const auto age = DurationArgument(arguments.age);
  if (!age.ok()) {
    return UsageError(absl::StrCat("--kept-age: \"", arguments.age, "\" is not a duration"),
                      "Write a number with a unit, such as 24h.");
  }
  options.max_kept_bytes = static_cast<int64_t>(*bytes);
  options.max_kept_age = *age;
  return absl::OkStatus();
}

void AddKeptOptions(CLI::App& command, KeptArguments& arguments) {
  command
      .add_option("--kept-bytes", arguments.bytes,
                  "The most bytes of committed results that the node keeps, in case that the "
                  "stored ones are damaged; never more than a tenth of the free disk space "
                  "(default: 1GiB; 0: none)")
      ->type_name("SIZE");
  command
      .add_option("--kept-age", arguments.age,
                  "How long the node keeps a committed result; at most an hour after the end of "
                  "its run (default: 24h)")
      ->type_name("DURATION");
}

void AddAttach(CommandLine& line, CLI::App& agent) {
  CLI::App& command = AddCommand(
      agent,
      {.name = "attach",
       .summary = "Run the agent of a node, attached to a relay",
       .details = "Collects results for runs, and runs the signed commands that policy.yaml in "
                  "the folder admits. Opens outbound connections only, through the proxy in "
                  "https_proxy if it is set. deploy/systemd has a unit for it.",
       .example = "muster agent attach\n"
                  "muster agent attach --dir /srv/node-1"});
  const auto options = std::make_shared<AttachOptions>();
  AddNodeFolderOption(command, options->folder);
  AllowRange(*command
                  .add_option("--parallel", options->parallel,
                              "The maximum number of commands that run at the same time (default: "
                              "16, at most 256)")
                  ->type_name("N"),
             1, 256);
  command
      .add_option("--docker", options->docker_socket,
                  "The socket of Docker, which runs commands in containers (default: $DOCKER_HOST, "
                  "then /var/run/docker.sock)")
      ->type_name(kFileValue);
  command
      .add_option("--registry-credentials", options->registry_credentials,
                  "The credentials of registries, in the format of Docker's config.json (default: "
                  "registry.json in the folder)")
      ->type_name(kFileValue);
  const auto kept = std::make_shared<KeptArguments>();
  AddKeptOptions(command, *kept);
  SetAction(line, command, [options, kept](Console&) -> absl::StatusOr<int> {
    RETURN_IF_ERROR(SetKept(*kept, *options));
    options->folder = NodeFolderPath(options->folder, ::getenv);
    if (options->registry_credentials.empty()) {
      options->registry_credentials = options->folder + "/registry.json";
    }
    options->docker_socket = DockerSocketPath(options->docker_socket, ::getenv);
    RETURN_IF_ERROR(RunAttached(*options));
    return kExitOk;
  });
}

void AddAgent(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "agent",
       .summary = "On a node: collect or wait for one result, and deliver it",
       .details =
           std::string(
               "The result is kept until it is committed, even if this program restarts.\n") +
           kExitCodes,
       .example = "muster agent --config node.json"});
  const auto options = std::make_shared<AgentOptions>();
  AddConfigOption(command, options->config_path);
  SetAction(line, command, [options](Console&) { return RunAgent(*options); });
  AddAttach(line, command);
}

void AddSubmit(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "submit",
       .summary = "On a node: deliver a file, for plugins that are shell scripts",
       .details = kExitCodes,
       .example =
           "muster submit facts.json --config node.json\n"
           "journalctl -o json | muster submit - --config node.json --file-name journal.json\n"
           "muster submit --error \"journal not found\" --config node.json"});
  const auto options = std::make_shared<SubmitOptions>();
  command.add_option("FILE", options->file, "The file, or - for stdin")->type_name("");
  command
      .add_option("--error", options->error_text,
                  "An error result instead of a file (bytes that are not UTF-8 become U+FFFD)")
      ->type_name(kTextValue);
  command
      .add_option("--media-type", options->media_type,
                  "The media type, such as application/json (default: from the file name)")
      ->type_name("TYPE");
  command
      .add_option("--file-name", options->file_name,
                  "The name of the result's file (default: the name of FILE)")
      ->type_name("NAME");
  AddConfigOption(command, options->config_path);
  SetAction(line, command, [options](Console&) -> absl::StatusOr<int> {
    if (options->file.empty() == options->error_text.empty()) {
      return UsageError("exactly one of FILE and --error is required",
                        "See the example in `muster submit --help`.");
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
