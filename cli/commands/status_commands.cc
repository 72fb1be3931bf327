#include "cli/commands/status_commands.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/damage_view.h"
#include "cli/output/follow.h"
#include "cli/output/format.h"
#include "cli/output/status_json.h"
#include "cli/rpc/credentials_file.h"
#include "cli/rpc/run_details.h"
#include "cli/rpc/status_source.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

struct StatusArguments {
  StatusQuery query;
  std::string max_age;
  bool watch = false;
  std::string until = "complete";
};

std::string JsonLine(const RunView& view) {
  v1::RunStatus status = view.status;
  status.clear_feed_time();  // these change without a change of the run
  status.clear_time();
  std::string line = Dump(StatusJson(status));
  line.pop_back();
  return line;
}

absl::StatusOr<std::unique_ptr<StatusSource>> Open(const CommandLine& line,
                                                   const StatusArguments& arguments) {
  StatusQuery query = arguments.query;
  query.context_file = line.context_file;
  query.max_age = kMaxCredentialsAge;
  if (!arguments.max_age.empty()) {
    const auto age = DurationArgument(arguments.max_age);
    if (!age.ok()) return AsUsageError(age.status(), "--max-age");
    query.max_age = *age;
  }
  return OpenStatusSource(query);
}

int RunExitCode(const RunView& view) {
  return HasEnded(view.status.state()) ? OutcomeExitCode(view.status.state(), view.status.counts())
                                       : kExitRunUnfinished;
}

absl::StatusOr<RunView> FollowToEnd(StatusSource& source, Console& console, bool on_stdout,
                                    bool json) {
  FollowOutput output{
      .stream = on_stdout ? console.out : console.err,
      .messages = console.err,
      .is_terminal = (on_stdout ? console.out_is_terminal : console.err_is_terminal) && !json,
      .color = on_stdout ? console.out_has_color : console.err_has_color};
  if (json) output.line = JsonLine;
  return Follow([&source] { return source.Fetch(); }, output);
}

absl::StatusOr<int> ShowStatus(Console& console, const CommandLine& line,
                               const StatusArguments& arguments) {
  if (arguments.watch) CatchInterrupts();
  ASSIGN_OR_RETURN(const auto source, Open(line, arguments));
  if (arguments.watch) {
    const auto end = FollowToEnd(*source, console, /*on_stdout=*/true, line.json);
    if (Interrupted()) return kExitInterrupted;
    if (!end.ok()) return end.status();
    return RunExitCode(*end);
  }
  if (line.json) {
    ASSIGN_OR_RETURN(auto json, source->FetchAll());
    ASSIGN_OR_RETURN(const auto status, ParseStatusJson(Dump(json)));
    const RunDetails details = FetchRunDetails(line.context_file, status.run());
    if (details.pinned) json["pinned"] = true;
    AddDamage(details.damaged, json);
    console.out << Dump(json);
    return RunExitCode(ViewOf(status));
  }
  ASSIGN_OR_RETURN(auto view, source->Fetch());
  RunDetails details = FetchRunDetails(line.context_file, view.status.run());
  view.pinned = details.pinned;
  view.damaged = std::move(details.damaged);
  console.out << Render(view, absl::Now(), console.width, console.out_has_color);
  return RunExitCode(view);
}

absl::StatusOr<int> Wait(Console& console, const CommandLine& line,
                         const StatusArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto source, Open(line, arguments));
  const auto end = FollowToEnd(*source, console, /*on_stdout=*/false, /*json=*/false);
  if (Interrupted()) return kExitInterrupted;
  if (!end.ok()) return end.status();
  if (line.json) {
    ASSIGN_OR_RETURN(const auto json, source->FetchAll());
    console.out << Dump(json);
  }
  PrintMessage(console, SummarySentence(*end));
  if (arguments.until == "complete") return RunExitCode(*end);
  return end->status.state() == v1::RUN_STATE_FAILED ? kExitOk : kExitOtherState;
}

void AddQueryOptions(CLI::App& command, StatusArguments& arguments) {
  command
      .add_option("RUN", arguments.query.run,
                  "The id of the run, or a unique prefix of it (default: the newest run with a "
                  "credentials file on this machine, else the newest run)")
      ->type_name("");
  command
      .add_option("--credentials", arguments.query.credentials_file,
                  "The credentials file from `muster run` (default: found as described below)")
      ->type_name(kFileValue);
  command
      .add_option("--max-age", arguments.max_age,
                  "The maximum age of the credentials file (default: 24h)")
      ->type_name("DURATION");
}

void AddStatusCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "status",
       .summary = "Show the progress of a run and the reasons for delays",
       .details =
           "Uses the file of --credentials, else $MUSTER_CREDENTIALS, else the file that "
           "`muster run` wrote for this run (or the newest run), else /tmp/sonobuoy.json. "
           "Asks the services as an operator if there is no file, if the file that it found is "
           "outdated, or with --context.\n"
           "With --watch, updates a terminal in place; other output gets a line for each "
           "change.\n"
           "Without --watch, an operator also sees whether the run is pinned, and which stored "
           "results are damaged.\n"
           "Exit codes: 0 every result is genuine, 3 some are errors, 6 some are timed "
           "out, 4 failed, 5 cancelled, 7 not ended, 69 the run does not exist, 78 no answer. "
           "Damage does not change the exit code: use `muster verify`.",
       .example = "muster status\nmuster status 3f2a --watch\n"
                  "muster status --json | jq '.plugins[] | select(.status == \"failed\")'"});
  const auto arguments = std::make_shared<StatusArguments>();
  AddQueryOptions(command, *arguments);
  command.add_flag("-w,--watch", arguments->watch,
                   "Follow the run until it is complete, failed or cancelled");
  AddJsonOption(line, command);
  AddColorOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return ShowStatus(console, line, *arguments); });
}

void AddWaitCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "wait",
       .summary = "Wait until a run is complete, failed or cancelled",
       .details = "Prints the output of `muster status --watch` on stderr, with the same exit "
                  "codes. With --until failed, the exit code is 0 if the run failed, else 8. With "
                  "--json, also prints the final status on stdout, as `muster status --json` "
                  "does.",
       .example = "muster wait\nmuster wait 3f2a --until failed"});
  const auto arguments = std::make_shared<StatusArguments>();
  AddQueryOptions(command, *arguments);
  AllowOnly(*command.add_option("--until", arguments->until,
                                "The expected final state (default: complete)"),
            "complete|failed");
  AddJsonOption(line, command);
  AddColorOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Wait(console, line, *arguments); });
}

}  // namespace

void AddStatusCommands(CommandLine& line) {
  AddStatusCommand(line);
  AddWaitCommand(line);
}

}  // namespace muster::cli
