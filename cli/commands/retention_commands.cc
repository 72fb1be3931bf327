#include "cli/commands/retention_commands.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/keep_rules.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "cli/rpc/run_reference.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

struct RetentionArguments {
  std::string keep;
};

struct PinArguments {
  std::string run;
};

Json PreviewJson(const v1::PreviewRetentionResponse& preview) {
  Json runs = Json::array();
  for (const v1::ExpiredRun& run : preview.runs()) {
    runs.push_back({{"run", run.run()},
                    {"title", run.title()},
                    {"end_time", Rfc3339(FromProto(run.end_time()))},
                    {"stored_size", run.stored_size()},
                    {"rule", run.rule()},
                    {"in_use", run.in_use()}});
  }
  return {{"keep", KeepRulesText(preview.rules())}, {"runs", runs},
          {"expired_runs", preview.expired_runs()}, {"expired_size", preview.expired_size()},
          {"kept_runs", preview.kept_runs()},       {"kept_size", preview.kept_size()},
          {"pinned_runs", preview.pinned_runs()},   {"pinned_size", preview.pinned_size()}};
}

std::string PreviewTable(const v1::PreviewRetentionResponse& preview, int width) {
  Table table({{"RUN"}, {"ENDED"}, {"SIZE", Table::Align::kRight}, {"RULE"}, {"TITLE"}});
  for (const v1::ExpiredRun& run : preview.runs()) {
    table.AddRow({run.run(), HumanTime(FromProto(run.end_time()), absl::Now()),
                  HumanSize(run.stored_size()),
                  run.in_use() ? absl::StrCat(run.rule(), " (in use)") : run.rule(), run.title()});
  }
  return table.Render(width);
}

std::string CountText(int64_t runs, int64_t bytes) {
  return absl::StrCat(runs, runs == 1 ? " run (" : " runs (", HumanSize(bytes), ")");
}

absl::StatusOr<int> Preview(Console& console, const CommandLine& line,
                            const RetentionArguments& arguments) {
  v1::PreviewRetentionRequest request;
  if (!arguments.keep.empty()) {
    ASSIGN_OR_RETURN(*request.mutable_rules(), ParseKeepRules(arguments.keep));
  }
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto preview, client->PreviewRetention(request));
  if (line.json) {
    console.out << Dump(PreviewJson(preview));
    return kExitOk;
  }
  if (preview.runs_size() > 0) console.out << PreviewTable(preview, console.width);
  console.out << MoreText(preview.expired_runs(), static_cast<size_t>(preview.runs_size()));
  PrintMessage(
      console,
      absl::StrCat("Keep ", KeepRulesText(preview.rules()), ": deletes ",
                   CountText(preview.expired_runs(), preview.expired_size()), ", keeps ",
                   CountText(preview.kept_runs(), preview.kept_size()), " and ",
                   preview.pinned_runs(), " pinned. Nothing was deleted by this command."));
  return kExitOk;
}

absl::StatusOr<int> Pin(Console& console, const CommandLine& line, const PinArguments& arguments,
                        bool pinned) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto id, ResolveRun(*client, arguments.run));
  ASSIGN_OR_RETURN(const auto run, pinned ? client->PinRun(id) : client->UnpinRun(id));
  if (line.json) console.out << Dump(ToJson(run));
  PrintMessage(console, absl::StrCat("Run ", id, " is ", pinned ? "pinned." : "no longer pinned."));
  return kExitOk;
}

void AddRetention(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "retention",
       .summary = "List the runs that retention would delete now (a dry run)",
       .details = "Deletes nothing. The rules are those of `muster up --keep`, or other ones to "
                  "try. A run in use is deleted when its last download has ended.",
       .example = "muster retention\nmuster retention --keep age=30d,runs=1000"});
  const auto arguments = std::make_shared<RetentionArguments>();
  command.add_option("--keep", arguments->keep, "Rules to try (default: the configured ones)")
      ->type_name("RULES");
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Preview(console, line, *arguments); });
}

void AddPin(CommandLine& line, bool pinned) {
  CLI::App& command =
      pinned ? AddCommand(line.app, {.name = "pin",
                                     .summary = "Protect a run from retention",
                                     .details = "`muster delete` deletes it nevertheless.",
                                     .example = "muster pin 3f2a"})
             : AddCommand(line.app, {.name = "unpin",
                                     .summary = "Let retention delete a run again",
                                     .example = "muster unpin 3f2a"});
  const auto arguments = std::make_shared<PinArguments>();
  command.add_option("RUN", arguments->run, "The id of the run, or a unique prefix of it")
      ->required()
      ->type_name("");
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments, pinned](Console& console) {
    return Pin(console, line, *arguments, pinned);
  });
}

}  // namespace

void AddRetentionCommands(CommandLine& line) {
  AddRetention(line);
  AddPin(line, true);
  AddPin(line, false);
}

}  // namespace muster::cli
