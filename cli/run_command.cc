#include <sys/random.h>

#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/follow.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/json_view.h"
#include "cli/run_commands.h"
#include "cli/session.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxDefinition = size_t{1} << 20;

struct RunArguments {
  std::vector<std::string> plugins;
  std::vector<std::string> files;
  std::vector<std::string> nodes;
  std::string timeout;
  std::string title;
  bool wait = false;
};

// Makes a second try of the same call harmless.
std::string RequestId() {
  char bytes[16] = {};
  if (::getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) return "";
  return Hex({bytes, sizeof(bytes)});
}

absl::StatusOr<std::string> ReadDefinition(const std::string& file) {
  if (file != "-") return ReadFileBounded(file, kMaxDefinition);
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (text.size() <= kMaxDefinition) return text;
  return MakeError(absl::StatusCode::kResourceExhausted, "FILE_TOO_LARGE",
                   absl::StrCat("standard input holds more than ", kMaxDefinition, " bytes"),
                   "A definition is a few lines of YAML.");
}

absl::StatusOr<v1::CreateRunRequest> MakeRequest(const RunArguments& arguments) {
  v1::CreateRunRequest request;
  request.set_request_id(RequestId());
  request.set_title(arguments.title);
  for (const std::string& plugin : arguments.plugins) request.add_plugins(plugin);
  for (const std::string& file : arguments.files) {
    absl::StatusOr<std::string> definition = ReadDefinition(file);
    if (!definition.ok()) return About(definition.status(), absl::StrCat("plugin file ", file));
    request.add_plugins(*std::move(definition));
  }
  if (request.plugins().empty()) {
    return UsageError("no plugin was named",
                      "Name one with --plugin (hostfacts, systemd-logs) or give a definition with "
                      "-f FILE.");
  }
  for (const std::string& node : arguments.nodes) request.add_nodes(node);
  if (arguments.timeout.empty()) return request;
  const auto timeout = DurationArgument(arguments.timeout);
  if (!timeout.ok()) {
    return UsageError(absl::StrCat("--timeout: ", std::string(timeout.status().message())),
                      NextStepOf(timeout.status()));
  }
  request.mutable_timeout()->set_seconds(absl::ToInt64Seconds(*timeout));
  return request;
}

void Explain(Console& console, const v1::Run& run) {
  Say(console,
      absl::StrCat("Run ", run.id(), " is planned: ", run.counts().planned(),
                   run.counts().planned() == 1 ? " result until " : " results until ",
                   HumanTime(ToTime(run.deadline()), absl::Now(), absl::LocalTimeZone()), "."));
  for (const v1::Plugin& plugin : run.plugins()) {
    if (!plugin.has_image()) continue;
    Say(console,
        absl::StrCat("Plugin ", plugin.name(),
                     " names a container image, which agents do not start: a sidecar beside its "
                     "container has to\ndeliver for it. Give that one credentials: muster "
                     "credentials export ",
                     run.id(), " --plugin ", plugin.name(),
                     plugin.once() ? " --node global" : " --any-node", " --format kubernetes"));
  }
}

absl::StatusOr<int> Wait(Console& console, Client& client, const std::string& run) {
  const absl::StatusOr<RunView> end =
      Follow([&] { return FetchRun(client, run); },
             {.stream = console.err, .is_terminal = console.err_is_terminal});
  if (Interrupted()) {
    Say(console, absl::StrCat("The run goes on. Follow it with: muster status ", run, " --watch"));
    return kExitInterrupted;
  }
  if (!end.ok()) return end.status();
  Say(console, absl::StrCat("Run ", run, " is ", SummaryLine(*end), "."));
  if (end->status.state() == v1::RUN_STATE_COMPLETE) {
    Say(console, absl::StrCat("Its archive: muster retrieve ", run));
  }
  return OutcomeExitCode(end->status.state(), end->counts);
}

absl::StatusOr<int> StartRun(Console& console, const CommandLine& line,
                             const RunArguments& arguments) {
  const auto request = MakeRequest(arguments);
  if (!request.ok()) return request.status();
  if (arguments.wait) CatchInterrupts();
  const auto client = Connect(line.context_file);
  if (!client.ok()) return client.status();
  const auto run = (*client)->CreateRun(*request);
  if (!run.ok()) return run.status();
  console.out << (line.json ? Dump(ToJson(*run)) : run->id() + "\n") << std::flush;
  Explain(console, *run);
  if (!arguments.wait) return kExitOk;
  return Wait(console, **client, run->id());
}

}  // namespace

void AddRunCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "run",
       .summary = "Plan a run: what is expected from which nodes",
       .details = "Prints the run's id. A plugin that runs once is planned for the node "
                  "\"global\", every\n"
                  "other for each --node. With --wait the exit code tells how it ended: 0 every "
                  "result is\n"
                  "there, 3 some are errors, 6 some did not come in time, 4 failed, 5 cancelled.",
       .example = "muster run --plugin hostfacts --plugin systemd-logs --node n1 --node n2\n"
                  "muster run -f plugin.yaml --node n1 --timeout 30m --wait"});
  const auto arguments = std::make_shared<RunArguments>();
  const auto add_list = [&](const char* names, std::vector<std::string>& list, const char* help) {
    return command.add_option(names, list, help)->allow_extra_args(false);
  };
  add_list("-p,--plugin", arguments->plugins, "A built-in plugin: hostfacts, systemd-logs")
      ->type_name("NAME")
      ->delimiter(',');
  add_list("-f,--file", arguments->files, "A plugin definition in YAML, as Sonobuoy's; - for stdin")
      ->type_name(kFileValue);
  add_list("-n,--node", arguments->nodes, "A node from which results are expected")
      ->type_name("NAME")
      ->delimiter(',');
  command.add_option("--timeout", arguments->timeout, "From now to the deadline (default: 6h)")
      ->type_name("DURATION");
  command.add_option("--title", arguments->title, "Free text to know it by")->type_name("TEXT");
  command.add_flag("--wait", arguments->wait, "Go on until the run has ended");
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return StartRun(console, line, *arguments); });
}

}  // namespace muster::cli
