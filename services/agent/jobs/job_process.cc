#include "services/agent/jobs/job_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "services/agent/jobs/build_command.h"
#include "services/agent/jobs/cancelled_jobs.h"
#include "services/agent/jobs/command_process.h"
#include "services/agent/jobs/deployment_files.h"
#include "services/agent/jobs/deployment_state.h"
#include "services/agent/jobs/job_final.h"
#include "services/agent/jobs/process_mark.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/poll_time.h"
#include "services/common/base/process_identity.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/docker.h"
#include "services/common/errors/workspaces.h"
#include "services/common/jobs/final_record.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/files.h"

namespace muster {
namespace {

constexpr absl::Duration kKillGrace = absl::Seconds(5);
constexpr absl::Duration kKillAgain = absl::Seconds(1);
constexpr absl::Duration kCheckState = absl::Seconds(1);
// An unreachable Docker neither stops the agent nor keeps the place of a command forever.
constexpr absl::Duration kAbandonAtStop = absl::Seconds(15);
constexpr absl::Duration kAbandon = absl::Minutes(10);
// The exit code that Docker reports for a container whose process it has lost.
constexpr int kExitOfLostContainer = 255;
constexpr BackoffOptions kDiskRetry = {absl::Seconds(1), absl::Seconds(10)};

absl::Duration Now() { return SystemClock().MonotonicNow(); }

void Drain(const UniqueFd& event) {
  eventfd_t value = 0;
  eventfd_read(event.get(), &value);
}

}  // namespace

JobProcess::JobProcess(const JobHost& host, NodeJobFolder& folder, std::string job, JobPlan plan,
                       std::function<void()> on_records)
    : host_(host),
      folder_(folder),
      quota_(host.quota),
      job_(std::move(job)),
      plan_(std::move(plan)),
      on_records_(std::move(on_records)),
      log_({.outbox = *folder_.log(),
            .job = job_,
            .on_records = on_records_,
            .stops = [this] { return agent_stops_.load(); },
            .wait = [this](absl::Duration time) { AwaitDisk(time); }}),
      provisions_(host.secrets, host.workspaces, folder_, job_, plan_),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void JobProcess::Stop(JobStop why) {
  JobStop none = JobStop::kNone;
  stop_.compare_exchange_strong(none, why);
  if (why == JobStop::kAgentStops) agent_stops_ = true;
  eventfd_write(wake_.get(), 1);
}

absl::StatusOr<std::unique_ptr<RunningCommand>> JobProcess::Start(JobOutputSink sink) {
  if (plan_.is_build) return StartBuild(std::move(sink));
  if (plan_.image.empty()) {
    return CommandProcess::Start(plan_, job_, std::move(sink), [this](const ProcessMark& mark) {
      return folder_.NoteProcess(mark);
    });
  }
  CommandContainer::Options options = ContainerOptions(std::move(sink));
  RETURN_IF_ERROR(provisions_.Create(ReadsOf(""), &options));
  return CommandContainer::Start(plan_, std::move(options), [this]() -> absl::Status {
    RETURN_IF_ERROR(provisions_.FetchSecrets([this] { return MustNotStart(); }));
    return folder_.NoteContainer({BootId(), absl::Now(), SinceBoot(), plan_});
  });
}

absl::StatusOr<std::unique_ptr<RunningCommand>> JobProcess::StartBuild(JobOutputSink sink) {
  ASSIGN_OR_RETURN(auto build, folder_.ReadBuild());
  const std::string files = DeploymentState(folder_.path()).files();
  if (StoredBytes(build.files()) > 0) {
    RETURN_IF_ERROR(
        WriteDeploymentFiles(files, build.files(), ContentFetcher(ReadsOf(build.build()))));
  }
  RETURN_IF_ERROR(folder_.NoteBuild());
  return BuildCommand::Start(plan_, std::move(build),
                             {.engine = host_.docker,
                              .builder = BuilderOf(host_.folder, host_.node),
                              .job = job_,
                              .files = files,
                              .sink = std::move(sink)});
}

CommandContainer::Options JobProcess::ContainerOptions(JobOutputSink sink) {
  return {.engine = host_.docker,
          .folder = host_.folder,
          .node = host_.node,
          .job = job_,
          .sink = std::move(sink),
          .stopped = [this] { return MustNotStart(); },
          .identified = [this](const std::string& id) { provisions_.SetContainer(id); }};
}

bool JobProcess::MustNotStart() const { return stop_ != JobStop::kNone || Now() >= limit_at_; }

ContentFetcher::Options JobProcess::ReadsOf(const std::string& deployment) {
  return {.source = host_.contents,
          .deployment = deployment,
          .stopped = [this] { return MustNotStart(); },
          .wait =
              [this](absl::Duration time) {
                pollfd wake = {wake_.get(), POLLIN, 0};
                poll(&wake, 1, PollMilliseconds(std::min(time, limit_at_ - Now())));
              }};
}

void JobProcess::Run() {
  if (folder_.container()) return Resume();
  OutputRecorder recorder(*folder_.log(), quota_, plan_.keep_output, plan_.max_output);
  const absl::Duration began = Now();
  limit_at_ = began + plan_.time_limit;
  const auto command = Start(SinkOf(recorder));
  if (!command.ok()) {
    Log(LogLevel::kWarning, "a job's command cannot be started",
        {{"job", job_}, {"error", command.status()}});
    provisions_.RemoveSecrets();  // also if the final record has to wait
    if (log_.Append(FinalOfStart(command.status()))) log_.Sync();
    return provisions_.RemoveState(/*with_unsaved=*/true);  // no container had it
  }
  log_.SetStart(absl::Now());
  RunToEnd(**command, recorder, began);
}

// The container of an earlier process of the agent.
void JobProcess::Resume() {
  const ContainerMark& mark = *folder_.container();
  OutputRecorder recorder(*folder_.log(), quota_, plan_.keep_output, plan_.max_output);
  provisions_.Restore(mark.start);
  const RecordOutbox::Content so_far = folder_.log()->content();
  CommandContainer::Options options = ContainerOptions(SinkOf(recorder));
  options.has_run = so_far.out.bytes + so_far.err.bytes + so_far.cut_bytes > 0;
  const auto command = CommandContainer::Adopt(std::move(options));
  Log(LogLevel::kInfo, "a container of an earlier process of this agent is followed",
      {{"job", job_}});
  if (!folder_.log()->content().started) log_.SetStart(mark.start);
  if (const auto& stop = folder_.stop()) {
    stop_ = ended_by_ = stop->why;
    signal_time_ = stop->time;
    too_large_ = stop->detail;
    signal_at_ = Now();
    // The agent may have been killed before it sent the signal.
    const bool at_once = stop->why == JobStop::kStateTooLarge;
    if (!at_once) command->Signal(SIGTERM);
    kill_at_ = signal_at_ + (at_once ? absl::ZeroDuration()
                                     : std::clamp(kKillGrace - (absl::Now() - stop->time),
                                                  absl::ZeroDuration(), kKillGrace));
  }
  RunToEnd(*command, recorder, Now() - mark.Elapsed());
}

JobOutputSink JobProcess::SinkOf(OutputRecorder& recorder) {
  return [this, &recorder](v1::JobStream stream, std::string_view data) {
    const auto record = [&](v1::JobStream name, std::string_view masked) {
      news_ = recorder.Add(name, masked, Now()) || news_;
    };
    provisions_.Filter(stream, data, record);
  };
}

void JobProcess::RunToEnd(RunningCommand& command, OutputRecorder& recorder, absl::Duration began) {
  limit_at_ = began + plan_.time_limit;
  bool ended = false;
  while (!ended && !IsAbandoned()) {
    const absl::Duration now = Now();
    const absl::Duration next = std::min(
        {StopIfTooLarge(now), EndIfDue(command, now), recorder.flush_at(), log_.StoreStart(now)});
    ended = command.Wait(wake_.get(), next - now);
    Drain(wake_);
    news_ = recorder.Flush(Now()) || news_;
    if (std::exchange(news_, false)) on_records_();
  }
  if (!ended && agent_stops_) return;  // the next process of the agent follows the container
  const absl::StatusOr<CommandEnd> end =
      ended ? command.Result()
            : absl::StatusOr<CommandEnd>(errors::DockerUnreachable(
                  host_.docker.socket(), "the container cannot be stopped"));
  log_.FinishStart();
  provisions_.FinishOutput(
      [&](v1::JobStream stream, std::string_view masked) { recorder.Add(stream, masked, Now()); });
  if (const auto cut = recorder.Finish()) log_.Append(*cut);
  spooled_ = recorder.spent();
  v1::JobRecord final = MakeFinal(end, Now() - began, recorder);
  const std::string reads_of_secrets = provisions_.EndVault();
  // A container that is not known to have ended may still write to it.
  if (ended && provisions_.workspace() != nullptr && !SaveWorkspace(final.mutable_final())) return;
  if (provisions_.has_state() && !HandleState(final.mutable_final())) return;
  if (end.ok() && end->outputs && final.final().outcome() == v1::JOB_OUTCOME_EXITED) {
    v1::JobRecord outputs;
    *outputs.mutable_outputs() = *end->outputs;
    if (!log_.Append(outputs)) return;
  }
  AddDetail(reads_of_secrets, final.mutable_final());  // to the outcome that may replace the first
  // The next process of the agent needs the container until the outcome cannot be lost.
  if (!log_.Append(final) || !log_.Sync()) return;
  provisions_.RemoveSecrets();
  if (command.Remove()) provisions_.RemoveState();
}

// Returns whether Docker was unreachable for so long that the container cannot be waited for.
bool JobProcess::IsAbandoned() const {
  if (plan_.image.empty() || ended_by_ == JobStop::kNone) return false;
  return Now() >= signal_at_ + (agent_stops_ ? kAbandonAtStop : kAbandon);
}

// A stop before the start is its outcome.
v1::JobRecord JobProcess::FinalOfStart(const absl::Status& failure) const {
  if (stop_ == JobStop::kCancelled) return CancelledBeforeStart();
  if (stop_ == JobStop::kAgentStops) {
    return FinalRecord(v1::JOB_OUTCOME_FAILED, "AGENT_STOPPED",
                       "the agent was stopped before the command started");
  }
  if (Now() >= limit_at_ && !plan_.image.empty()) return TimeLimitBeforeStart(plan_, failure);
  return FinalRecord(v1::JOB_OUTCOME_FAILED,
                     plan_.image.empty() ? "COMMAND_NOT_STARTED" : ReasonOf(failure),
                     ToStd(failure.message()));
}

absl::Duration JobProcess::StopIfTooLarge(absl::Duration now) {
  if (!provisions_.has_state() || stop_ != JobStop::kNone) return absl::InfiniteDuration();
  if (now < check_state_at_) return check_state_at_;
  too_large_ = provisions_.WhyTooLarge();
  if (!too_large_.empty()) Stop(JobStop::kStateTooLarge);
  return check_state_at_ = now + kCheckState;
}

absl::Duration JobProcess::EndIfDue(RunningCommand& command, absl::Duration now) {
  if (kill_at_ == absl::InfiniteDuration()) {
    if (now >= limit_at_) Stop(JobStop::kTimedOut);
    ended_by_ = stop_;
    if (ended_by_ == JobStop::kNone) return limit_at_;
    signal_time_ = absl::Now();
    signal_at_ = now;
    NoteStop();
    const bool at_once = ended_by_ == JobStop::kStateTooLarge;
    command.Signal(at_once ? SIGKILL : SIGTERM);
    kill_at_ = now + (at_once ? kKillAgain : kKillGrace);
  }
  if (now >= kill_at_) {
    command.Signal(SIGKILL);
    kill_at_ = now + kKillAgain;  // the daemon may not have received it
  }
  return kill_at_;
}

// Without it, a later process of the agent takes the end for one without a cause.
void JobProcess::NoteStop() {
  if (!folder_.container() || ended_by_ == JobStop::kAgentStops) return;
  const absl::Status noted = folder_.NoteStop({ended_by_, signal_time_, too_large_});
  if (noted.ok()) return;
  Log(LogLevel::kWarning, "the cause of the end of a container cannot be stored",
      {{"job", job_}, {"error", noted}});
}

v1::JobRecord JobProcess::MakeFinal(const absl::StatusOr<CommandEnd>& end, absl::Duration took,
                                    const OutputRecorder& recorder) const {
  v1::JobRecord record;
  if (!end.ok()) {
    record =
        FinalRecord(v1::JOB_OUTCOME_LOST, ReasonOf(end.status()), ToStd(end.status().message()));
  } else {
    record = FinalOfEnd(*end, recorder.missing());
    if (end->started && end->finished) {
      took = std::max(*end->finished - *end->started, absl::ZeroDuration());
    }
  }
  v1::JobRecord::Final& final = *record.mutable_final();
  if (end.ok()) final.set_signal(end->exit.signal);
  ToProto(took, final.mutable_duration());
  final.set_stdout_bytes(recorder.bytes(v1::JOB_STREAM_STDOUT));
  final.set_stderr_bytes(recorder.bytes(v1::JOB_STREAM_STDERR));
  return record;
}

v1::JobRecord JobProcess::FinalOfEnd(const CommandEnd& end, bool output_missing) const {
  // A container may have ended while the agent or Docker was down, before it was to be stopped.
  const bool by_itself = end.finished && *end.finished < signal_time_;
  switch (by_itself ? JobStop::kNone : ended_by_) {
    case JobStop::kNone:
      break;
    case JobStop::kCancelled:
      return FinalRecord(v1::JOB_OUTCOME_CANCELLED, "", "");
    case JobStop::kTimedOut:
      return TimeLimitFinal(plan_, end.doing);
    case JobStop::kStateTooLarge:
      return StateTooLargeFinal(too_large_);
    case JobStop::kAgentStops:
      return FinalRecord(v1::JOB_OUTCOME_LOST, "AGENT_STOPPED",
                         "the agent was stopped, and ended the command");
  }
  if (folder_.container() && folder_.container()->boot != BootId() &&
      end.exit.exit_code == kExitOfLostContainer &&
      (!end.finished || *end.finished >= BootTime())) {
    return FinalRecord(v1::JOB_OUTCOME_LOST, "MACHINE_RESTARTED",
                       "the machine was restarted while the container ran");
  }
  if (!end.failure.ok()) {
    return FinalRecord(v1::JOB_OUTCOME_FAILED, ReasonOf(end.failure), ToStd(end.failure.message()));
  }
  absl::Status lost = end.output_lost;
  if (lost.ok() && provisions_.secrets_lost()) {
    lost = errors::ContainerOutputLost("the node has lost the secrets that are masked in it");
  }
  if (lost.ok() && output_missing)
    lost = errors::ContainerOutputLost("Docker's log differs from what was received");
  v1::JobRecord record = end.out_of_memory ? OutOfMemoryFinal(plan_)
                                           : FinalRecord(v1::JOB_OUTCOME_EXITED, ReasonOf(lost),
                                                         ToStd(lost.message()));
  record.mutable_final()->set_exit_code(end.exit.exit_code);
  return record;
}

bool JobProcess::HandleState(v1::JobRecord::Final* final) {
  if (final->outcome() != v1::JOB_OUTCOME_EXITED || folder_.log()->content().outputs) return true;
  // Also if the container ended before the next check, or while no agent ran.
  if (const std::string what = provisions_.WhyTooLarge(); !what.empty()) {
    ReplaceExit(StateTooLargeFinal(what), final);
    return true;
  }
  if (final->exit_code() != 0) return true;
  WrittenOutputs written = provisions_.ReadOutputs();
  if (!written.problems.empty()) {
    ReplaceExit(FinalRecord(v1::JOB_OUTCOME_FAILED, "OUTPUTS_INVALID",
                            absl::StrJoin(written.problems, "; ")),
                final);
    return true;
  }
  if (written.outputs.outputs().empty()) return true;
  v1::JobRecord record;
  *record.mutable_outputs() = std::move(written.outputs);
  return log_.Append(record);
}

bool JobProcess::SaveWorkspace(v1::JobRecord::Final* final) {
  const absl::Duration until = Now() + host_.save_within;
  for (Backoff backoff(kDiskRetry); !folder_.log()->content().workspace;) {
    const auto saved = provisions_.workspace()->Save([this] { return agent_stops_.load(); });
    if (saved.ok()) {
      if (!log_.Append(*saved)) return false;
      break;
    }
    absl::Status failure = saved.status();
    if (absl::IsCancelled(failure)) return false;  // the next process of the agent does it
    LogLimited(LogLevel::kError, "the workspace of a job cannot be saved", job_,
               {{"job", job_}, {"error", failure}});
    if (!IsNeverSaved(failure) && Now() >= until) {
      provisions_.workspace()->GiveUp();
      failure = errors::WorkspaceNotSaved(
          absl::StrCat("for ", absl::FormatDuration(host_.save_within), ": ", failure.message()));
    }
    if (IsNeverSaved(failure)) {
      const std::string why(failure.message());
      if (final->outcome() == v1::JOB_OUTCOME_EXITED) {
        ReplaceExit(FinalRecord(v1::JOB_OUTCOME_FAILED, ReasonOf(failure), why), final);
      } else {
        AddDetail(why, final);
      }
      return true;
    }
    if (agent_stops_) return false;
    AwaitDisk(backoff.Next(std::nullopt));
  }
  provisions_.workspace()->SetSaved();
  return true;
}

void JobProcess::AwaitDisk(absl::Duration time) {
  pollfd wake = {wake_.get(), POLLIN, 0};
  poll(&wake, 1, PollMilliseconds(time));
  Drain(wake_);
}

}  // namespace muster
