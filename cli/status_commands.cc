#include "cli/status_commands.h"

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/follow.h"
#include "cli/interrupt.h"
#include "cli/json_view.h"
#include "cli/run_reference.h"
#include "cli/session.h"

namespace muster::cli {
namespace {

constexpr int kPage = 10'000;

struct StatusArguments {
  std::string run;
  bool watch = false;
};

// The whole of what the status service knows, as JSON: every pair.
absl::StatusOr<Json> AllOf(Client& client, const std::string& run) {
  v1::GetStatusRequest request;
  request.set_run(run);
  request.set_page_size(kPage);
  absl::StatusOr<v1::RunStatus> page = client.GetStatus(request);
  if (!page.ok()) return run.empty() ? OrNoRuns(page.status()) : page.status();
  Json json = ToJson(*page);
  request.set_run(page->run());
  while (!page->next_page_token().empty()) {
    request.set_page_token(page->next_page_token());
    page = client.GetStatus(request);
    if (!page.ok()) return page.status();
    for (const v1::PairStatus& pair : page->pairs()) json["pairs"].push_back(ToJson(pair));
  }
  return json;
}

std::string JsonLine(const RunView& view) {
  Json json = ToJson(view.status);
  json.erase("pairs");
  json.erase("feed_time");  // it changes without news
  std::string line = Dump(json);
  line.pop_back();
  return line;
}

absl::StatusOr<int> Watch(Console& console, Client& client, std::string run, bool json) {
  FollowOutput output{.stream = console.out, .is_terminal = console.out_is_terminal && !json};
  if (json) output.line = JsonLine;
  const auto fetch = [&]() -> absl::StatusOr<RunView> {
    absl::StatusOr<RunView> view = FetchStatus(client, run);
    if (view.ok()) run = view->status.run();  // stay with the run that was newest at first
    return view;
  };
  const absl::StatusOr<RunView> end = Follow(fetch, output);
  if (Interrupted()) return kExitInterrupted;
  if (!end.ok()) return end.status();
  return OutcomeExitCode(end->status.state(), end->counts);
}

absl::StatusOr<int> ShowStatus(Console& console, const CommandLine& line,
                               const StatusArguments& arguments) {
  if (arguments.watch) CatchInterrupts();
  const auto client = Connect(line.context_file);
  if (!client.ok()) return client.status();
  std::string run;
  if (!arguments.run.empty()) {  // else the status service knows the newest by itself
    const auto resolved = ResolveRun(**client, arguments.run);
    if (!resolved.ok()) return resolved.status();
    run = *resolved;
  }
  if (arguments.watch) return Watch(console, **client, run, line.json);
  if (line.json) {
    const auto json = AllOf(**client, run);
    if (!json.ok()) return json.status();
    console.out << Dump(*json);
    return kExitOk;
  }
  const auto view = FetchStatus(**client, run);
  if (!view.ok()) return view.status();
  console.out << Render(*view, absl::Now(), absl::LocalTimeZone(), console.width);
  return kExitOk;
}

}  // namespace

void AddStatusCommands(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "status",
       .summary = "Show how far a run is",
       .details =
           "With --watch it goes on until the run has ended: drawn in place on a terminal,\n"
           "a line for each change elsewhere. Then the exit code tells how it ended: 0 every\n"
           "result is there, 3 some are errors, 6 some did not come in time, 4 failed,\n"
           "5 cancelled.",
       .example = "muster status\nmuster status 3f2a --watch\n"
                  "muster status --json | jq '.pairs[] | select(.outcome == \"error\")'"});
  const auto arguments = std::make_shared<StatusArguments>();
  command
      .add_option("RUN", arguments->run,
                  "Its id or the beginning of it; the newest run if left out")
      ->type_name("");
  command.add_flag("-w,--watch", arguments->watch, "Go on until the run has ended");
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return ShowStatus(console, line, *arguments); });
}

}  // namespace muster::cli
