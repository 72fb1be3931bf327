#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/commands/run_commands.h"
#include "cli/commands/run_request.h"
#include "cli/commands/secret_output.h"
#include "cli/commands/unknown_nodes.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/follow.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/rpc/session.h"
#include "cli/rpc/status_source.h"
#include "cli/rpc/viewer.h"
#include "cli/supervisor/home.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kShownWithin = absl::Seconds(2);
constexpr absl::Duration kShownPause = absl::Milliseconds(20);

void PrintPlan(Console& console, const v1::Run& run) {
  PrintMessage(console, absl::StrCat("Run ", run.id(), " is planned: ", run.counts().planned(),
                                     run.counts().planned() == 1 ? " result, deadline "
                                                                 : " results, deadline ",
                                     HumanTime(FromProto(run.deadline()), absl::Now()), "."));
  for (const v1::Plugin& plugin : run.plugins()) {
    if (!plugin.has_image() && plugin.once()) {
      PrintMessage(
          console,
          absl::StrCat("Plugin ", plugin.name(),
                       " runs once, and attached agents collect only what runs on each "
                       "node.\nCollect it on any machine:\n  muster credentials export ",
                       run.id(), " --plugin ", plugin.name(), " --node global -o ", plugin.name(),
                       ".json\n  muster agent --config ", plugin.name(), ".json"));
    }
    if (!plugin.has_image()) continue;
    PrintMessage(
        console,
        absl::StrCat("Plugin ", plugin.name(),
                     " names a container image, and agents do not start images.\n"
                     "A sidecar of its container must deliver the result. Export credentials for "
                     "it:\n  muster credentials export ",
                     run.id(), " --plugin ", plugin.name(),
                     plugin.once() ? " --node global" : " --any-node", " --format kubernetes"));
  }
}

// Warns of names that are probably mistakes: of nodes that have not joined, and of nodes for
// plugins that run once.
void WarnOfNodes(Console& console, Client& client, const std::vector<std::string>& nodes,
                 const v1::Run& run) {
  if (nodes.empty()) return;
  if (std::ranges::all_of(run.plugins(), &v1::Plugin::once)) {
    PrintMessage(console,
                 "Warning: --node has no effect, because every plugin of this run runs once, for "
                 "the node \"global\".");
    return;
  }
  const auto enrolled = client.ListEnrolledNodes({});
  if (!enrolled.ok()) return;
  for (const std::string& warning : UnknownNodeWarnings(nodes, *enrolled)) {
    PrintMessage(console, warning);
  }
}

// Returns the run from the aggregator, with the details of the status service if it answers. The
// exit code must not depend on the status service, which may lag behind: its details of the end are
// awaited for a moment.
absl::StatusOr<RunView> FetchRun(Client& client, StatusSource& source, const std::string& run) {
  ASSIGN_OR_RETURN(const v1::Run authoritative, client.GetRun(run));
  const absl::Duration limit =
      HasEnded(authoritative.state()) ? kShownWithin : absl::ZeroDuration();
  const absl::Time until = absl::Now() + limit;
  do {
    absl::StatusOr<RunView> details = source.Fetch();
    if (!details.ok()) break;
    if (auto view = ViewOf(authoritative, *std::move(details))) return *std::move(view);
  } while (absl::Now() < until && SleepUnlessInterrupted(kShownPause));
  return ViewOf(authoritative);
}

absl::StatusOr<int> Wait(Console& console, const std::shared_ptr<Client>& client,
                         const std::string& run) {
  const auto source = OperatorStatusSource(client, run);
  const absl::StatusOr<RunView> end = Follow([&] { return FetchRun(*client, *source, run); },
                                             {.stream = console.err,
                                              .messages = console.err,
                                              .is_terminal = console.err_is_terminal,
                                              .color = console.err_has_color});
  if (Interrupted()) {
    PrintMessage(console, absl::StrCat("The run continues. Follow it with: muster status ", run,
                                       " --watch"));
    return kExitInterrupted;
  }
  if (!end.ok()) return end.status();
  PrintMessage(console, SummarySentence(*end));
  if (end->status.state() == v1::RUN_STATE_COMPLETE) {
    PrintMessage(console, absl::StrCat("Download its archive: muster retrieve ", run));
  }
  const int code = OutcomeExitCode(end->status.state(), end->status.counts());
  if (code != kExitOk) {
    PrintMessage(console, absl::StrCat("What is missing, and why: muster status ", run));
  }
  return code;
}

// Waits until the status service shows the new run, so that a status command directly after this
// one does. Not for long, and not while the service is down: the run exists all the same.
void AwaitShown(Client& client, const std::string& run) {
  v1::GetStatusRequest request;
  request.set_run(run);
  const absl::Time until = absl::Now() + kShownWithin;
  while (absl::Now() < until) {
    const std::string reason = ReasonOf(client.GetStatus(request, until - absl::Now()).status());
    if (reason != "RUN_NOT_FOUND" && reason != "STATUS_NOT_READY") return;
    if (!SleepUnlessInterrupted(kShownPause)) return;
  }
}

// Writes the credentials file of the run, to stdout for "-". The run exists already: the caller
// must report its id with an error.
absl::Status WriteRunCredentials(Console& console, Client& client, const RunArguments& arguments,
                                 const std::string& run) {
  ASSIGN_OR_RETURN(const auto credentials, IssueViewer(client, run));
  if (!arguments.credentials.empty()) {
    return WriteSecretOutput(console, arguments.credentials, CredentialsJson(credentials).view());
  }
  ASSIGN_OR_RETURN(const auto home, supervisor::HomeFromEnvironment());
  RemoveExpiredCredentials(home, absl::Now());
  return WriteCredentials(home, run, credentials);
}

absl::StatusOr<int> StartRun(Console& console, const CommandLine& line,
                             const RunArguments& arguments) {
  const bool prints_credentials = arguments.credentials == "-";
  if (prints_credentials && line.json) {
    return UsageError("--json and --credentials - both write to stdout", "Use one of them.");
  }
  ASSIGN_OR_RETURN(const auto request, MakeRunRequest(arguments));
  RETURN_IF_ERROR(CheckNewSecretOutput("--credentials", arguments.credentials));
  if (arguments.wait) CatchInterrupts();
  ASSIGN_OR_RETURN(auto connected, Connect(line.context_file));
  const std::shared_ptr<Client> client = std::move(connected);
  const auto created = client->CreateRun(request);
  if (!created.ok()) return WithFileNames(WithTimeoutOption(created.status()), arguments);
  const v1::Run& run = *created;
  if (!prints_credentials) {
    // With --wait, --json prints the run once, after it has ended.
    if (!line.json) console.out << run.id() << "\n" << std::flush;
    if (line.json && !arguments.wait) console.out << Dump(ToJson(run));
  }
  PrintPlan(console, run);
  WarnOfNodes(console, *client, {request.nodes().begin(), request.nodes().end()}, run);
  const absl::Status accessible = WriteRunCredentials(console, *client, arguments, run.id());
  if (!accessible.ok()) {
    if (line.json && arguments.wait) console.out << Dump(ToJson(run));
    return WithSubject(accessible, absl::StrCat("run ", run.id(), ", which is still running"));
  }
  if (!arguments.wait) {
    AwaitShown(*client, run.id());
    return kExitOk;
  }
  const absl::StatusOr<int> code = Wait(console, client, run.id());
  if (line.json) {
    const auto ended = client->GetRun(run.id());
    if (ended.ok()) {
      console.out << Dump(ToJson(*ended));
    } else if (code.ok()) {
      return ended.status();
    }
  }
  return code;
}

}  // namespace

void AddRunCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "run",
       .summary = "Create a run, with a plan of expected results",
       .details = "Prints the run id. A plugin that runs once is planned for the node \"global\", "
                  "any other plugin for each --node.\n"
                  "Writes a credentials file, with which `muster status` can read the status of "
                  "this run on any machine.\n"
                  "With --wait the exit code is 0 if every result is genuine, 3 if some are "
                  "errors, 6 if some are timed out, 4 if the run failed, and 5 if it was "
                  "cancelled. --json then prints the run after it has ended.",
       .example = "muster run --plugin hostfacts --plugin systemd-logs --node n1 --node n2\n"
                  "muster run -f plugin.yaml --node n1 --timeout 30m --wait"});
  const auto arguments = std::make_shared<RunArguments>();
  const auto add_list = [&](const char* names, std::vector<std::string>& list, const char* help) {
    return command.add_option(names, list, help)->allow_extra_args(false);
  };
  add_list("-p,--plugin", arguments->plugins, "Built-in plugins: hostfacts, systemd-logs")
      ->type_name("NAME,...")
      ->delimiter(',');
  add_list("-f,--file", arguments->files,
           "A plugin definition in YAML, in Sonobuoy's format; - for stdin")
      ->type_name(kFileValue);
  add_list("-n,--node", arguments->nodes, "Nodes from which results are expected")
      ->type_name("NAME,...")
      ->delimiter(',');
  command
      .add_option("--nodes-file", arguments->nodes_file,
                  "A file with further names of nodes, one on each line; - for stdin")
      ->type_name(kFileValue);
  command
      .add_option("--timeout", arguments->timeout,
                  "The time until the deadline (default: 6h, at most 720h)")
      ->type_name("DURATION");
  command
      .add_option("--start-grace", arguments->start_grace,
                  "The run fails if no agent reports within this time; 0: no limit (default: 5m if "
                  "agents run every plugin)")
      ->type_name("DURATION");
  command
      .add_option("--lost-after", arguments->lost_after,
                  "A pair is timed out after this time without heartbeats; at least three must be "
                  "missing (default: 3m, from 10s to 24h)")
      ->type_name("DURATION");
  command.add_flag("--fail-fast", arguments->fail_fast,
                   "The run fails when the first pair is timed out");
  command
      .add_option("--credentials", arguments->credentials,
                  "The path of a new credentials file; - prints the credentials instead of the run "
                  "id (default: a file in $MUSTER_HOME/credentials)")
      ->type_name(kFileValue);
  command
      .add_option("--status-client-ca", arguments->status_listener.client_ca,
                  "Open a status listener for this run, for clients of this CA (PEM)")
      ->type_name(kFileValue);
  command
      .add_option("--status-cert", arguments->status_listener.certificate,
                  "The certificate of the status listener, followed by its issuers (PEM); needs "
                  "--status-key and --status-client-ca (default: the certificate of the fleet)")
      ->type_name(kFileValue);
  command
      .add_option("--status-key", arguments->status_listener.key,
                  "The key of that certificate (PEM, mode 0600)")
      ->type_name(kFileValue);
  command.add_option("--title", arguments->title, "A title for the run")->type_name(kTextValue);
  command.add_flag("--wait", arguments->wait,
                   "Wait until the run is complete, failed or cancelled");
  AddJsonOption(line, command);
  AddColorOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return StartRun(console, line, *arguments); });
}

}  // namespace muster::cli
