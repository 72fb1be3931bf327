#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/commands/run_commands.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/run_view.h"
#include "cli/output/table.h"
#include "cli/rpc/credentials_file.h"
#include "cli/rpc/run_reference.h"
#include "cli/rpc/session.h"
#include "cli/supervisor/home.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

constexpr int kMaxPage = 1000;

struct RunsArguments {
  int limit = 20;
};

struct NamedRunArguments {
  std::string run;
  std::string reason;
};

absl::StatusOr<std::vector<v1::Run>> ListNewest(Client& client, int limit, bool* has_older) {
  std::vector<v1::Run> runs;
  v1::ListRunsRequest request;
  do {
    const int left = limit - static_cast<int>(runs.size());
    request.set_page_size(std::min(left, kMaxPage));
    ASSIGN_OR_RETURN(const auto page, client.ListRuns(request));
    runs.insert(runs.end(), page.runs().begin(), page.runs().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && static_cast<int>(runs.size()) < limit);
  *has_older = !request.page_token().empty();
  return runs;
}

// Returns "pinned, 2 damaged": what the state does not say.
std::string NotesText(const v1::Run& run) {
  std::vector<std::string> notes;
  if (run.pinned()) notes.push_back("pinned");
  if (run.damaged_results() > 0) notes.push_back(absl::StrCat(run.damaged_results(), " damaged"));
  return absl::StrJoin(notes, ", ");
}

std::string RunsTable(const std::vector<v1::Run>& runs, int width, bool color) {
  Table table({{"RUN"},
               {.heading = "STATE", .colored = true},
               {"CREATED"},
               {"RESULTS"},
               {"NOTES"},
               {"TITLE"}});
  for (const v1::Run& run : runs) {
    table.AddRow({run.id(), StateWord(run.state()),
                  HumanTime(FromProto(run.create_time()), absl::Now()), CountsText(run.counts()),
                  NotesText(run), run.title()});
  }
  return table.Render(width, color);
}

absl::StatusOr<int> ShowRuns(Console& console, const CommandLine& line,
                             const RunsArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  bool has_older = false;
  ASSIGN_OR_RETURN(const auto runs, ListNewest(*client, arguments.limit, &has_older));
  if (line.json) {
    Json list = Json::array();
    for (const v1::Run& run : runs) list.push_back(ToJson(run));
    console.out << Dump(list);
  } else if (runs.empty()) {
    PrintMessage(console,
                 "There are no runs. Start one with: muster run --plugin hostfacts --node NODE");
  } else {
    console.out << RunsTable(runs, console.width, console.out_has_color);
  }
  if (has_older) {
    PrintMessage(console, absl::StrCat("List older runs with --limit ", arguments.limit * 10));
  }
  return kExitOk;
}

absl::StatusOr<int> CancelRun(Console& console, const CommandLine& line,
                              const NamedRunArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto id, ResolveRun(*client, arguments.run));
  ASSIGN_OR_RETURN(const auto before, client->GetRun(id));
  v1::CancelRunRequest request;
  request.set_run(id);
  request.set_reason(arguments.reason);
  ASSIGN_OR_RETURN(const auto run, client->CancelRun(request));
  if (line.json) console.out << Dump(ToJson(run));
  const bool changed =
      run.state() == v1::RUN_STATE_CANCELLED && before.state() != v1::RUN_STATE_CANCELLED;
  PrintMessage(console, absl::StrCat("Run ", id, changed ? " is " : " was already ",
                                     StateWord(run.state()), "."));
  return kExitOk;
}

absl::StatusOr<int> DeleteRun(Console& console, const CommandLine& line,
                              const NamedRunArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto id, ResolveRun(*client, arguments.run));
  if (id != arguments.run) {
    return UsageError(
        absl::StrCat("\"", arguments.run, "\" is not the whole id of the run"),
        absl::StrCat("This cannot be undone: if it is the right run, give all digits: "
                     "muster delete ",
                     id));
  }
  RETURN_IF_ERROR(client->DeleteRun(id));
  if (const auto home = supervisor::HomeFromEnvironment(); home.ok()) {
    std::error_code ignored;  // the file may not exist
    std::filesystem::remove(CredentialsPath(*home, id), ignored);
  }
  PrintMessage(console, absl::StrCat("Run ", id, " is deleted, with its results and archive."));
  return kExitOk;
}

void AddRuns(CommandLine& line) {
  CLI::App& command =
      AddCommand(line.app, {.name = "runs",
                            .summary = "List the runs, newest first",
                            .details = "A run is planned until its first outcome. NOTES shows "
                                       "pinned runs, and the number of damaged stored results "
                                       "and archives.",
                            .example = "muster runs\nmuster runs --json | jq -r '.[].id'"});
  const auto arguments = std::make_shared<RunsArguments>();
  AllowRange(
      *command.add_option("--limit", arguments->limit, "The maximum number of runs (default: 20)")
           ->type_name("NUMBER"),
      1, 1'000'000);
  AddJsonOption(line, command);
  AddColorOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return ShowRuns(console, line, *arguments); });
}

void AddCancel(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "cancel",
       .summary = "Cancel a run",
       .details = "No archive is built. Delivered results are kept until the run is deleted; "
                  "later results are refused.",
       .example = "muster cancel 3f2a --reason \"wrong nodes\""});
  const auto arguments = std::make_shared<NamedRunArguments>();
  command.add_option("RUN", arguments->run, "The id of the run, or a unique prefix of it")
      ->required()
      ->type_name("");
  command.add_option("--reason", arguments->reason, "The reason, stored with the run")
      ->type_name(kTextValue);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return CancelRun(console, line, *arguments); });
}

void AddDelete(CommandLine& line) {
  CLI::App& command =
      AddCommand(line.app, {.name = "delete",
                            .summary = "Delete a run that has ended, its results and its archive",
                            .details = "This cannot be undone.",
                            .example = "muster delete 3f2a0123456789ab"});
  const auto arguments = std::make_shared<NamedRunArguments>();
  command.add_option("RUN", arguments->run, "The whole id of the run")->required()->type_name("");
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return DeleteRun(console, line, *arguments); });
}

}  // namespace

void AddRunsCommands(CommandLine& line) {
  AddRuns(line);
  AddCancel(line);
  AddDelete(line);
}

}  // namespace muster::cli
