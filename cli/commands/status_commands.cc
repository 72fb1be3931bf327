#include "cli/commands/status_commands.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/follow.h"
#include "cli/output/format.h"
#include "cli/output/status_json.h"
#include "cli/rpc/credentials_file.h"
#include "cli/rpc/status_source.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

struct StatusArguments {
  StatusQuestion question;
  std::string max_age;
  bool watch = false;
  std::string until = "complete";
};

std::string JsonLine(const RunView& view) {
  v1::RunStatus status = view.status;
  status.clear_feed_time();  // these change without news
  status.clear_time();
  std::string line = Dump(StatusJson(status));
  line.pop_back();
  return line;
}

absl::StatusOr<std::unique_ptr<StatusSource>> Open(const CommandLine& line,
                                                   const StatusArguments& arguments) {
  StatusQuestion question = arguments.question;
  question.context_file = line.context_file;
  question.max_age = kMaxCredentialsAge;
  if (!arguments.max_age.empty()) {
    const auto age = DurationArgument(arguments.max_age);
    if (!age.ok()) {
      return UsageError(absl::StrCat("--max-age: ", std::string(age.status().message())),
                        NextStepOf(age.status()));
    }
    question.max_age = *age;
  }
  return OpenStatusSource(question);
}

int ExitCodeFor(const RunView& view) {
  return IsFinal(view.status.state()) ? OutcomeExitCode(view.status.state(), view.status.counts())
                                      : kExitRunGoesOn;
}

absl::StatusOr<RunView> FollowToEnd(StatusSource& source, std::ostream& stream, bool is_terminal,
                                    bool json) {
  FollowOutput output{.stream = stream, .is_terminal = is_terminal && !json};
  if (json) output.line = JsonLine;
  return Follow([&source] { return source.Fetch(); }, output);
}

absl::StatusOr<int> ShowStatus(Console& console, const CommandLine& line,
                               const StatusArguments& arguments) {
  if (arguments.watch) CatchInterrupts();
  ASSIGN_OR_RETURN(const auto source, Open(line, arguments));
  if (arguments.watch) {
    const auto end = FollowToEnd(*source, console.out, console.out_is_terminal, line.json);
    if (Interrupted()) return kExitInterrupted;
    if (!end.ok()) return end.status();
    return ExitCodeFor(*end);
  }
  if (line.json) {
    ASSIGN_OR_RETURN(const auto json, source->FetchAll());
    const std::string text = Dump(json);
    console.out << text;
    ASSIGN_OR_RETURN(const auto status, ParseStatusJson(text));
    return ExitCodeFor(ViewOf(status));
  }
  ASSIGN_OR_RETURN(const auto view, source->Fetch());
  console.out << Render(view, absl::Now(), absl::LocalTimeZone(), console.width);
  return ExitCodeFor(view);
}

absl::StatusOr<int> Wait(Console& console, const CommandLine& line,
                         const StatusArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto source, Open(line, arguments));
  const auto end = FollowToEnd(*source, console.err, console.err_is_terminal, false);
  if (Interrupted()) return kExitInterrupted;
  if (!end.ok()) return end.status();
  Say(console, absl::StrCat("Run ", end->status.run(), " is ", SummaryLine(*end), "."));
  if (arguments.until == "complete") return ExitCodeFor(*end);
  return end->status.state() == v1::RUN_STATE_FAILED ? kExitOk : kExitOtherEnd;
}

void AddQuestion(CommandLine& line, CLI::App& command, StatusArguments& arguments) {
  command
      .add_option("RUN", arguments.question.run,
                  "Its id or the beginning of it; the newest run if left out")
      ->type_name("");
  command
      .add_option("--credentials", arguments.question.credentials_file,
                  "The file that `muster run` wrote (default: looked for)")
      ->type_name(kFileValue);
  command
      .add_option("--max-age", arguments.max_age, "The greatest age of that file (default: 24h)")
      ->type_name("DURATION");
  AddContextOption(line, command);
}

void AddStatusCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "status",
       .summary = "Show how far a run is, and why it is not further",
       .details =
           "Asks with a credentials file: --credentials, else $MUSTER_CREDENTIALS, else the one\n"
           "that `muster run` wrote for this run (or the newest), else /tmp/sonobuoy.json;\n"
           "without any, or with --context, the services themselves.\n"
           "With --watch it goes on until the run has ended: drawn in place on a terminal,\n"
           "a line for each change elsewhere. The exit code tells how things stand: 0 every\n"
           "result is there, 3 some are errors, 6 some did not come in time, 4 failed,\n"
           "5 cancelled, 7 the run goes on, 78 nobody answers.",
       .example = "muster status\nmuster status 3f2a --watch\n"
                  "muster status --json | jq '.plugins[] | select(.status == \"failed\")'"});
  const auto arguments = std::make_shared<StatusArguments>();
  AddQuestion(line, command, *arguments);
  command.add_flag("-w,--watch", arguments->watch, "Go on until the run has ended");
  AddJsonOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return ShowStatus(console, line, *arguments); });
}

void AddWaitCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "wait",
       .summary = "Wait until a run has ended",
       .details = "Shows what `muster status --watch` shows, on stderr. The exit codes are the\n"
                  "same; with --until failed 0 is a run that failed, and 8 any other end.",
       .example = "muster wait\nmuster wait 3f2a --until failed"});
  const auto arguments = std::make_shared<StatusArguments>();
  AddQuestion(line, command, *arguments);
  AllowOnly(*command.add_option("--until", arguments->until,
                                "The end that is hoped for (default: complete)"),
            "complete|failed");
  SetAction(line, command,
            [&line, arguments](Console& console) { return Wait(console, line, *arguments); });
}

}  // namespace

void AddStatusCommands(CommandLine& line) {
  AddStatusCommand(line);
  AddWaitCommand(line);
}

}  // namespace muster::cli
