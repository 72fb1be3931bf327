#include "cli/commands/exec_command.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/commands/job_targets.h"
#include "cli/commands/without_answer.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/format.h"
#include "cli/output/job_output.h"
#include "cli/output/job_view.h"
#include "cli/rpc/client.h"
#include "cli/rpc/job_client.h"
#include "cli/rpc/session.h"
#include "cli/rpc/sign_command.h"
#include "services/common/base/image_reference.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kDefaultDeadline = absl::Seconds(60);
constexpr absl::Duration kDefaultTtl = absl::Seconds(10);
// A reachable node starts the command within this time, or within the time limit if that is
// shorter.
constexpr absl::Duration kStartWithin = absl::Seconds(30);
// With --parallel, the time until the last node starts is unknown.
constexpr absl::Duration kParallelWindow = absl::Hours(12);

struct ExecArguments {
  TargetArguments targets;
  std::string deadline;
  std::string ttl;
  int parallel = 0;
  std::vector<std::string> classes;
  std::vector<std::string> environment;
  bool detach = false;
  bool discard = false;
  std::string image;
  std::vector<std::string> command;
};

absl::Status AddEnvironment(const std::vector<std::string>& texts, v1::Command* command) {
  std::map<std::string, std::string> sorted;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return UsageError(absl::StrCat("\"", text, "\" is not a variable"),
                        "Write NAME=value, such as --env LANG=C.");
    }
    const std::string name = text.substr(0, equals);
    if (!sorted.emplace(name, text.substr(equals + 1)).second) {
      return UsageError(absl::StrCat("the variable ", name, " is set twice"),
                        "Set each variable once.");
    }
  }
  for (const auto& [name, value] : sorted) {
    v1::Command::Variable& variable = *command->add_environment();
    variable.set_name(name);
    variable.set_value(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Command> MakeCommand(const ExecArguments& arguments, absl::Duration ttl,
                                        absl::Duration deadline) {
  v1::Command command;
  command.set_action(std::string(arguments.image.empty() ? kExecAction : kContainerAction));
  if (!arguments.image.empty()) command.mutable_container()->set_image(arguments.image);
  for (const std::string& argument : arguments.command) command.add_argv(argument);
  for (const std::string& name : arguments.classes) command.add_classes(name);
  RETURN_IF_ERROR(AddEnvironment(arguments.environment, &command));
  const absl::Time now = absl::Now();
  ToProto(now, command.mutable_not_before());
  const absl::Duration start_within = std::max(ttl, std::min(deadline, kStartWithin));
  ToProto(now + (arguments.parallel > 0 ? kParallelWindow : start_within),
          command.mutable_not_after());
  ToProto(deadline, command.mutable_time_limit());
  command.set_discard_output(arguments.discard);
  command.mutable_targets()->set_all(arguments.targets.all);
  return command;
}

// Signs and submits the command as the job `id`. Sets `*may_run` as JobClient::Submit.
absl::StatusOr<v1::Job> Submit(const OperatorContext& context, JobClient& client,
                               const ExecArguments& arguments,
                               const std::vector<std::string>& nodes, const std::string& id,
                               bool* may_run) {
  ASSIGN_OR_RETURN(const auto deadline,
                   DurationOr(arguments.deadline, kDefaultDeadline, "--deadline"));
  ASSIGN_OR_RETURN(const auto ttl, DurationOr(arguments.ttl, kDefaultTtl, "--ttl"));
  ASSIGN_OR_RETURN(auto command, MakeCommand(arguments, ttl, deadline));
  command.set_job(id);
  ASSIGN_OR_RETURN(auto signed_command, SignForNodes(context, std::move(command), nodes));
  v1::SubmitJobRequest request;
  request.set_parallel(arguments.parallel);
  ToProto(ttl, request.mutable_wait());
  return client.Submit(std::move(signed_command), std::move(request), may_run);
}

void PrintMayRun(Console& console, const std::string& job) {
  PrintMessage(console,
               absl::StrCat("The command may still run on its nodes. To end it, an operator "
                            "can run: muster job cancel ",
                            job));
}

absl::Status CheckProgram(const ExecArguments& arguments) {
  if (!arguments.image.empty()) {
    if (IsImageByContent(arguments.image)) return absl::OkStatus();
    return UsageError(
        absl::StrCat("\"", Printable(arguments.image), "\" is not an image by its content"),
        "Write NAME@sha256:DIGEST, or sha256:ID for an image that the nodes have. `docker image "
        "inspect` shows both.");
  }
  if (arguments.command.empty()) {
    return UsageError("COMMAND is required", "See the example in `muster exec --help`.");
  }
  if (absl::StartsWith(arguments.command.front(), "/")) return absl::OkStatus();
  return UsageError(absl::StrCat("\"", Printable(arguments.command.front()),
                                 "\" is not the absolute path of a program"),
                    "Name the program by its path on the nodes, such as /usr/bin/uptime.");
}

absl::StatusOr<int> Exec(Console& console, const CommandLine& line,
                         const ExecArguments& arguments) {
  RETURN_IF_ERROR(CheckTargets(arguments.targets, "muster exec"));
  RETURN_IF_ERROR(CheckProgram(arguments));
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  if (context.relay_targets.empty()) {
    return UsageError(
        "the context file names no relay",
        "Create a new context on the machine of the services: muster up, or muster operator add.");
  }
  JobClient client(context);
  ASSIGN_OR_RETURN(const auto nodes, NamedNodes(context, arguments.targets));
  const std::string id = NewCommandId();
  bool may_run = false;
  const auto submitted = Submit(context, client, arguments, nodes, id, &may_run);
  if (!submitted.ok()) {
    if (may_run) PrintMayRun(console, id);
    if (Interrupted()) return kExitInterrupted;
    return submitted.status();
  }
  const v1::Job& job = *submitted;
  if (arguments.detach) {
    console.out << (line.json ? Dump(ToJson(job)) : absl::StrCat(job.job(), "\n"));
    return kExitOk;
  }
  JobOutput output(console, line.json);
  v1::WatchJobRequest request;
  request.set_job(job.job());
  WatchReminder reminder;
  if (arguments.parallel == 0) {  // else the other nodes wait for their turn
    reminder = RemindOfSilentNodes(output, context, nodes, "muster job cancel " + job.job());
  }
  const auto end = client.Watch(
      request,
      [&](const v1::WatchJobResponse& response) {
        output.HandleResponse(response);
        return true;
      },
      reminder);
  if (Interrupted()) {
    PrintMessage(console, absl::StrCat("\nThe job is still running. Follow it: muster job logs -f ",
                                       job.job(), "\nCancel it: muster job cancel ", job.job()));
    return kExitInterrupted;
  }
  if (!end.ok()) {
    PrintMayRun(console, job.job());
    return end.status();
  }
  return output.Finish(*end);
}

void AddExecutionOptions(CLI::App& command, ExecArguments& arguments) {
  command
      .add_option("--deadline", arguments.deadline,
                  "The time limit of the command on each node, from its start (default: 60s)")
      ->type_name("DURATION");
  AddPaceOptions(command, "job", arguments.ttl, arguments.parallel);
  command
      .add_option("--class", arguments.classes,
                  "Rudder classes of the command, separated by commas")
      ->type_name("NAME,...")
      ->delimiter(',');
  command
      .add_option("--env", arguments.environment,
                  "An environment variable; the node's policy must admit it")
      ->type_name("NAME=VALUE");
  command
      .add_option("--image", arguments.image,
                  "Run it in a container with this image: NAME@sha256:DIGEST, or sha256:ID for one "
                  "that the nodes have; the node's policy must admit it")
      ->type_name("IMAGE");
  command.add_flag("--detach", arguments.detach, "Print the job id and do not wait");
  command.add_flag("--discard", arguments.discard,
                   "Do not send, print or store the output: only the outcome of each node");
}

}  // namespace

void AddExecCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "exec",
       .summary = "Run a command on many nodes, and print its output",
       .details = "The command is signed with your identity. The policy of each node decides "
                  "whether it runs. No shell interprets it.\n"
                  "The options end at `--` or at the program: all words after the program are its "
                  "arguments.\n"
                  "Prints each failure on stderr when it happens, and after 5 seconds, and at "
                  "growing intervals, the nodes that have not answered. If a node becomes "
                  "unreachable while it runs the command, the job waits for its report until 10 s "
                  "after the time limit; the command may still run on the node.\n"
                  "The job continues if this program is interrupted; `muster job` shows and "
                  "cancels it. The exit code is 9 if the command failed on a node.",
       .example =
           "muster exec --all -- /usr/bin/uptime\n"
           "muster exec --label rack=b1 --deadline 5m --parallel 10 -- /usr/sbin/fstrim -v /\n"
           "muster exec --node n1 --image registry.example/tools@sha256:DIGEST -- check --all"});
  command.positionals_at_end();  // do not parse the program's options
  const auto arguments = std::make_shared<ExecArguments>();
  AddTargetOptions(command, arguments->targets);
  AddExecutionOptions(command, *arguments);
  command
      .add_option(
          "COMMAND", arguments->command,
          "The program by its absolute path, and its arguments; in a container, default: the "
          "command of the image")
      ->type_name("");
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Exec(console, line, *arguments); });
}

}  // namespace muster::cli
