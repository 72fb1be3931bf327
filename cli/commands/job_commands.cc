#include "cli/commands/job_commands.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/format.h"
#include "cli/output/job_output.h"
#include "cli/output/job_view.h"
#include "cli/output/table.h"
#include "cli/rpc/job_client.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

struct JobArguments {
  std::string job;
  int limit = 20;
  bool follow = false;
  int64_t position = 0;
  std::vector<std::string> nodes;
};

std::string Time(const google::protobuf::Timestamp& time) {
  return HumanTime(FromProto(time), absl::Now(), absl::LocalTimeZone());
}

absl::StatusOr<std::unique_ptr<JobClient>> OpenJobs(const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  return std::make_unique<JobClient>(context);
}

absl::StatusOr<int> List(Console& console, const CommandLine& line, const JobArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, OpenJobs(line));
  v1::ListJobsRequest request;
  request.set_page_size(arguments.limit);
  ASSIGN_OR_RETURN(const auto list, client->List(request));
  if (line.json) {
    Json json = Json::array();
    for (const v1::Job& job : list.jobs()) json.push_back(ToJson(job));
    console.out << Dump(json);
    return kExitOk;
  }
  Table table({{"JOB"}, {"STATE"}, {"SUBMITTED"}, {"NODES"}, {"COMMAND"}});
  for (const v1::Job& job : list.jobs()) {
    table.AddRow({job.job(), StateWord(job.state()), Time(job.submit_time()),
                  absl::StrCat(job.succeeded(), "/", job.targets()), TypedCommand(job)});
  }
  console.out << table.Render(console.width);
  return kExitOk;
}

absl::StatusOr<int> Show(Console& console, const CommandLine& line, const JobArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, OpenJobs(line));
  ASSIGN_OR_RETURN(const auto job, client->Get(arguments.job));
  if (line.json) {
    console.out << Dump(ToJson(job));
    return kExitOk;
  }
  Table table({{"JOB"}, {job.job()}});
  table.AddRow({"command", TypedCommand(job)});
  table.AddRow({"state", StateWord(job.state())});
  table.AddRow({"nodes", SummaryLine(job)});
  table.AddRow({"submitted", absl::StrCat(Time(job.submit_time()), " by ", job.submitted_by())});
  table.AddRow(job.has_end_time() ? std::vector<std::string>{"ended", Time(job.end_time())}
                                  : std::vector<std::string>{"ends by", Time(job.deadline())});
  table.AddRow(
      {"output", absl::StrCat(HumanSize(job.output_bytes()),
                              job.cut_bytes() == 0
                                  ? ""
                                  : absl::StrCat(", ", HumanSize(job.cut_bytes()), " left out"))});
  for (const v1::JobOutcomeCount& entry : job.outcomes()) {
    table.AddRow({OutcomeWord(entry.outcome()), std::to_string(entry.count())});
  }
  console.out << table.Render(console.width);
  return kExitOk;
}

absl::StatusOr<int> Logs(Console& console, const CommandLine& line, const JobArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto client, OpenJobs(line));
  v1::WatchJobRequest request;
  request.set_job(arguments.job);
  request.set_position(arguments.position);
  for (const std::string& node : arguments.nodes) request.add_nodes(node);
  JobOutput output(console, line.json);
  // Without -f what is there now is enough: the first answer that has caught up.
  const auto end = client->Watch(request, [&](const v1::WatchJobResponse& response) {
    output.Take(response);
    return arguments.follow || response.records_size() > 0;
  });
  if (Interrupted()) return kExitInterrupted;
  if (!end.ok()) return end.status();
  return end->state() == v1::JOB_STATE_RUNNING ? kExitOk : output.Finish(*end);
}

absl::StatusOr<int> Cancel(Console& console, const CommandLine& line,
                           const JobArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, OpenJobs(line));
  ASSIGN_OR_RETURN(const auto job, client->Cancel(arguments.job));
  if (line.json) console.out << Dump(ToJson(job));
  Say(console, absl::StrCat("Job ", job.job(), ": ", SummaryLine(job), "."));
  return kExitOk;
}

CLI::App& AddOne(CommandLine& line, CLI::App& group, const CommandText& text,
                 const std::shared_ptr<JobArguments>& arguments,
                 absl::StatusOr<int> (*act)(Console&, const CommandLine&, const JobArguments&)) {
  CLI::App& command = AddCommand(group, text);
  if (text.name != "list") {
    command.add_option("JOB", arguments->job, "Its id, from muster job list")
        ->required()
        ->type_name("");
  }
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments, act](Console& console) { return act(console, line, *arguments); });
  return command;
}

}  // namespace

void AddJobCommands(CommandLine& line) {
  CLI::App& group = AddCommand(line.app, {.name = "job",
                                          .summary = "List, show, follow and cancel jobs",
                                          .example = "muster job list"});
  group.require_subcommand(1);
  const auto arguments = std::make_shared<JobArguments>();
  CLI::App& list =
      AddOne(line, group,
             {.name = "list", .summary = "List the newest jobs", .example = "muster job list"},
             arguments, List);
  CLI::Option* limit = list.add_option("--limit", arguments->limit, "How many (default: 20)");
  limit->type_name("N");
  AllowRange(*limit, 1, 1'000);
  AddOne(line, group,
         {.name = "show",
          .summary = "Show how far a job is, and what came of it",
          .example = "muster job show 0123456789abcdef0123456789abcdef"},
         arguments, Show);
  CLI::App& logs = AddOne(line, group,
                          {.name = "logs",
                           .summary = "Print what nodes printed, and why they failed",
                           .details = "Exit code 9 if the job has ended and a node did not end "
                                      "with 0.",
                           .example = "muster job logs -f 0123456789abcdef0123456789abcdef"},
                          arguments, Logs);
  logs.add_flag("-f,--follow", arguments->follow, "Go on until the job has ended");
  logs.add_option("--node", arguments->nodes, "Only of these, separated by commas")
      ->type_name("NAME,...")
      ->delimiter(',');
  logs.add_option("--position", arguments->position,
                  "Go on after the record with this position (default: from the beginning)")
      ->type_name("N");
  AddOne(line, group,
         {.name = "cancel",
          .summary = "End a job everywhere",
          .details = "Nodes that have not begun do not begin; commands are ended with SIGTERM, "
                     "5 s later with SIGKILL.",
          .example = "muster job cancel 0123456789abcdef0123456789abcdef"},
         arguments, Cancel);
}

}  // namespace muster::cli
