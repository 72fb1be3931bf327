#include "cli/commands/job_commands.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/job_logs.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/audit_view.h"
#include "cli/output/format.h"
#include "cli/output/job_next_step.h"
#include "cli/output/job_view.h"
#include "cli/output/table.h"
#include "cli/rpc/client.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/job_client.h"
#include "cli/rpc/job_reference.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr size_t kFailuresShown = 20;
// Enough of an id to name it in later commands; the whole one is in --json.
constexpr size_t kShownDigits = 12;

struct JobArguments {
  std::string job;
  std::string by;
  int limit = 20;
  LogArguments logs;
};

std::string FormatTime(const google::protobuf::Timestamp& time) {
  return HumanTime(FromProto(time), absl::Now());
}

absl::StatusOr<std::unique_ptr<JobClient>> OpenJobs(const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  return std::make_unique<JobClient>(context);
}

// Returns what the deployments among the jobs deploy, by job. Empty if the jobs service does not
// answer: the relay knows only their images.
std::map<std::string, std::string> SubjectsOf(
    const OperatorContext& context, const google::protobuf::RepeatedPtrField<v1::Job>& jobs) {
  const auto is_deployment = [](const v1::Job& job) {
    return job.action() == kDeploymentAction || job.action() == kBuildAction;
  };
  if (context.jobs_targets.empty() || std::ranges::none_of(jobs, is_deployment)) return {};
  const auto client = DeploymentClient::Open(context);
  if (!client.ok()) return {};
  auto subjects = (*client)->SubjectsByJob();
  return subjects.ok() ? *std::move(subjects) : std::map<std::string, std::string>();
}

std::string SubjectOf(const std::map<std::string, std::string>& subjects, const v1::Job& job) {
  const auto found = subjects.find(job.job());
  return found == subjects.end() ? "" : found->second;
}

absl::StatusOr<int> List(Console& console, const CommandLine& line, const JobArguments& arguments) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  v1::ListJobsRequest request;
  request.set_page_size(arguments.limit);
  ASSIGN_OR_RETURN(const auto list, JobClient(context).List(request));
  if (line.json) {
    Json json = Json::array();
    for (const v1::Job& job : list.jobs()) json.push_back(ToJson(job));
    console.out << Dump(json);
    return kExitOk;
  }
  if (list.jobs().empty()) {
    PrintMessage(console, "There are no jobs. Submit one: muster exec --all -- /usr/bin/uptime");
    return kExitOk;
  }
  using Align = Table::Align;
  Table table({{"JOB"},
               {"STATE"},
               {"SUBMITTED"},
               {"BY"},
               {"NODES"},
               {"FAILED", Align::kRight},
               {"COMMAND"}});
  const auto subjects = SubjectsOf(context, list.jobs());
  for (const v1::Job& job : list.jobs()) {
    table.AddRow({job.job().substr(0, kShownDigits), StateWord(job.state()),
                  FormatTime(job.submit_time()), ShortName(job.submitted_by()),
                  absl::StrCat(DoneCount(job), "/", job.targets()),
                  absl::StrCat(DoneCount(job) - job.succeeded()),
                  QuotedCommand(job, SubjectOf(subjects, job))});
  }
  console.out << table.Render(console.width);
  return kExitOk;
}

// Returns the final records so far, one for each node that is done.
absl::StatusOr<std::vector<v1::JobRecord>> FetchFinals(JobClient& client, const std::string& job) {
  std::vector<v1::JobRecord> finals;
  v1::WatchJobRequest request;
  request.set_job(job);
  request.set_omit_output(true);
  RETURN_IF_ERROR(client
                      .Watch(request,
                             [&](const v1::WatchJobResponse& response) {
                               for (const v1::JobRecord& record : response.records()) {
                                 if (record.has_final()) finals.push_back(record);
                               }
                               return response.records_size() > 0;
                             })
                      .status());
  return finals;
}

Table JobTable(const v1::Job& job, const std::string& subject,
               const std::vector<v1::JobRecord>& finals) {
  Table table({{"JOB"}, {job.job()}});
  table.AddRow({"command", QuotedCommand(job, subject)});
  if (!job.image().empty()) table.AddRow({"image", job.image()});
  table.AddRow({"state", StateWord(job.state())});
  table.AddRow({"nodes", SummaryLine(job)});
  table.AddRow({"submitted", absl::StrCat(FormatTime(job.submit_time()), " by ",
                                          ShortName(job.submitted_by()))});
  table.AddRow(job.has_end_time()
                   ? std::vector<std::string>{"ended", FormatTime(job.end_time())}
                   : std::vector<std::string>{"deadline", FormatTime(job.deadline())});
  table.AddRow(
      {"output", absl::StrCat(HumanSize(job.output_bytes()),
                              job.cut_bytes() == 0
                                  ? ""
                                  : absl::StrCat(", ", HumanSize(job.cut_bytes()), " omitted"))});
  for (const v1::JobOutcomeCount& entry : job.outcomes()) {
    table.AddRow({OutcomeWord(entry.outcome()),
                  absl::StrCat(entry.count(), entry.count() == 1 ? " node" : " nodes")});
  }
  size_t failed = 0;
  for (const v1::JobRecord& record : finals) {
    const std::string failure = FailureText(record.final());
    if (failure.empty() || ++failed > kFailuresShown) continue;
    table.AddRow({"failed", absl::StrCat(record.node(), ": ", failure)});
  }
  if (failed > kFailuresShown) {
    table.AddRow({"", absl::StrCat("and ", failed - kFailuresShown, " more nodes")});
  }
  NextSteps steps;
  for (const v1::JobRecord& record : finals) {
    steps.Add(record.node(), record.final(), !job.image().empty());
  }
  for (const std::string& step : steps.Texts(job.job())) table.AddRow({"next", step});
  return table;
}

absl::StatusOr<int> Show(Console& console, const CommandLine& line, const JobArguments& arguments) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  JobClient client(context);
  ASSIGN_OR_RETURN(const auto id, ResolveJob(client, arguments.job));
  ASSIGN_OR_RETURN(const auto job, client.Get(id));
  ASSIGN_OR_RETURN(const auto finals, FetchFinals(client, id));
  if (line.json) {
    Json json = ToJson(job);
    json["nodes"] = Json::array();
    for (const v1::JobRecord& record : finals) json["nodes"].push_back(ToJson(record));
    console.out << Dump(json);
    return kExitOk;
  }
  google::protobuf::RepeatedPtrField<v1::Job> one;
  *one.Add() = job;
  console.out
      << JobTable(job, SubjectOf(SubjectsOf(context, one), job), finals).Render(console.width);
  return kExitOk;
}

absl::StatusOr<int> Logs(Console& console, const CommandLine& line, const JobArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  JobClient client(context);
  ASSIGN_OR_RETURN(const auto id, ResolveJob(client, arguments.job));
  return PrintLogs(console, line.json, context, client, id, arguments.logs, /*targets=*/{},
                   {.noun = "job",
                    .command = absl::StrCat("muster job logs -f ", id),
                    .list = absl::StrCat("muster job logs ", id, " --json"),
                    .cancel = absl::StrCat("muster job cancel ", id)});
}

// Returns the URI of an identity: `text` is one, a name with its kind, or the name of an operator.
absl::StatusOr<std::string> UriOf(const OperatorContext& context, const std::string& text) {
  if (absl::StrContains(text, '/')) return ActorUri(context.fleet, text);
  const auto uri = ToUri({context.fleet, UserIdentity{text}});
  if (!uri.ok()) return AsUsageError(uri.status(), "--by");
  return *uri;
}

// Returns OPERATOR_NOT_FOUND if no operator has this URI, and none of the listed jobs is of it.
absl::Status CheckKnown(const OperatorContext& context, JobClient& client, const std::string& name,
                        const std::string& uri) {
  ASSIGN_OR_RETURN(const auto operators, Client(context).ListOperators());
  for (const v1::Operator& one : operators.operators()) {
    if (one.uri() == uri) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const bool has_jobs, HasJobs(client, uri));
  if (has_jobs) return absl::OkStatus();
  return FromService(errors::OperatorNotFound(name), "the list of operators");
}

// Returns what a cancellation has led to; nodes may still have to end.
std::string CancelledText(const v1::Job& job) {
  return absl::StrCat(
      "Job ", job.job(),
      job.state() == v1::JOB_STATE_RUNNING ? " is being cancelled: " : " is cancelled: ",
      SummaryLine(job), ".");
}

absl::StatusOr<int> CancelAllBy(Console& console, const CommandLine& line, const std::string& by) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const std::string uri, UriOf(context, by));
  JobClient client(context);
  ASSIGN_OR_RETURN(const auto jobs, ListRunningJobs(client, uri));
  Json json = Json::array();
  for (const v1::Job& running : jobs) {
    ASSIGN_OR_RETURN(const auto job, client.Cancel(running.job()));
    json.push_back(ToJson(job));
    PrintMessage(console, CancelledText(job));
  }
  if (line.json) console.out << Dump(json);
  if (jobs.empty()) {
    RETURN_IF_ERROR(CheckKnown(context, client, by, uri));
    PrintMessage(console, absl::StrCat("No job of ", uri, " is running."));
  }
  return kExitOk;
}

absl::StatusOr<int> Cancel(Console& console, const CommandLine& line,
                           const JobArguments& arguments) {
  if (arguments.job.empty() && arguments.by.empty()) {
    return UsageError("JOB or --by is required", "See `muster job cancel --help`.");
  }
  if (!arguments.job.empty() && !arguments.by.empty()) {
    return UsageError("JOB and --by were given", "Give one of them.");
  }
  if (!arguments.by.empty()) return CancelAllBy(console, line, arguments.by);
  ASSIGN_OR_RETURN(const auto client, OpenJobs(line));
  ASSIGN_OR_RETURN(const auto id, ResolveJob(*client, arguments.job));
  ASSIGN_OR_RETURN(const auto before, client->Get(id));
  const bool had_ended = before.state() != v1::JOB_STATE_RUNNING;
  ASSIGN_OR_RETURN(const auto job, client->Cancel(id));
  if (line.json) console.out << Dump(ToJson(job));
  PrintMessage(console, had_ended ? absl::StrCat("Job ", job.job(),
                                                 " had already ended: ", SummaryLine(job), ".")
                                  : CancelledText(job));
  return kExitOk;
}

CLI::App& AddJobCommand(CommandLine& line, CLI::App& group, const CommandText& text,
                        const std::shared_ptr<JobArguments>& arguments,
                        absl::StatusOr<int> (*handler)(Console&, const CommandLine&,
                                                       const JobArguments&)) {
  CLI::App& command = AddCommand(group, text);
  if (text.name != "list") {
    command.add_option("JOB", arguments->job, "The id of the job, or a unique prefix of it")
        ->required(text.name != "cancel")
        ->type_name("");
  }
  SetAction(line, command, [&line, arguments, handler](Console& console) {
    return handler(console, line, *arguments);
  });
  return command;
}

}  // namespace

void AddJobCommands(CommandLine& line) {
  CLI::App& group = AddCommand(line.app, {.name = "job",
                                          .summary = "List, show, follow and cancel jobs",
                                          .example = "muster job list"});
  group.require_subcommand(1);
  const auto arguments = std::make_shared<JobArguments>();
  CLI::App& list = AddJobCommand(
      line, group,
      {.name = "list", .summary = "List the newest jobs", .example = "muster job list"}, arguments,
      List);
  CLI::Option* limit =
      list.add_option("--limit", arguments->limit, "The maximum number of jobs (default: 20)");
  limit->type_name("N");
  AllowRange(*limit, 1, 1'000);
  CLI::App& show = AddJobCommand(line, group,
                                 {.name = "show",
                                  .summary = "Show the progress and the outcomes of a job",
                                  .example = "muster job show 0123456789abcdef0123456789abcdef"},
                                 arguments, Show);
  CLI::App& logs = AddJobCommand(
      line, group,
      {.name = "logs",
       .summary = "Print the output of a job, and the reasons for failures",
       .details = "The exit code is 9 if the job has ended and the command failed on a node, or "
                  "with --node on one of these nodes.",
       .example = "muster job logs -f 0123456789abcdef0123456789abcdef"},
      arguments, Logs);
  AddLogOptions(logs, "job", arguments->logs);
  CLI::App& cancel =
      AddJobCommand(line, group,
                    {.name = "cancel",
                     .summary = "Cancel a job on all nodes, or all jobs of an identity",
                     .details = "Nodes that have not started the command do not start it. Running "
                                "commands receive SIGTERM, and SIGKILL 5 s later.",
                     .example = "muster job cancel 0123456789abcdef0123456789abcdef\n"
                                "muster job cancel --by alice"},
                    arguments, Cancel);
  cancel
      .add_option("--by", arguments->by,
                  "Cancel all running jobs of this operator, or of the identity with this URI")
      ->type_name("IDENTITY");
  for (CLI::App* const command : {&list, &show, &logs, &cancel}) {
    AddJsonOption(line, *command);
    AddContextOption(line, *command);
  }
}

}  // namespace muster::cli
