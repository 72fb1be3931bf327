#include "services/agent/jobs/command_container.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/agent/docker/daemon_start.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/poll_time.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/docker.h"
#include "services/common/errors/jobs.h"

namespace muster {
namespace {

// The daemon's log needs about 40 bytes more for each line. It is bounded, because the output
// beyond the limit of the job is in it, too.
constexpr int64_t kLogOfOutput = 24;
constexpr int64_t kMostLog = int64_t{4} << 30;
constexpr int64_t kMoreLog = int64_t{64} << 20;
constexpr absl::Duration kReopenAfter = absl::Seconds(1);

// A daemon that is restarted answers again within this time, mostly.
constexpr absl::Duration kRestartsWithin = absl::Seconds(20);
constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(200);
// The daemon follows the running containers this time after its start.
constexpr absl::Duration kRestoresWithin = absl::Seconds(1);
// The agent notices the end of the daemon within this time.
constexpr absl::Duration kNoticedWithin = absl::Seconds(1);
// The daemon reports the end of a container some milliseconds before or after that of its output.
constexpr absl::Duration kEndGrace = absl::Seconds(10);
// A request to start the container may still be executed.
constexpr absl::Duration kStartGrace = absl::Seconds(5);
// The output of an ended container is given up after this time.
constexpr absl::Duration kOutputGrace = absl::Seconds(30);

absl::Duration Now() { return SystemClock().MonotonicNow(); }

ContainerSpec SpecOf(const JobPlan& plan, const CommandContainer::Options& options,
                     const ImageInfo& image) {
  ContainerSpec spec;
  spec.name = ContainerNameOf(options.node, options.job);
  spec.image = image.name;
  spec.command = plan.argv;
  spec.environment = plan.environment;
  spec.environment.push_back(absl::StrCat("MUSTER_JOB=", options.job));
  spec.environment.insert(spec.environment.end(), options.environment.begin(),
                          options.environment.end());
  spec.user = plan.user;
  spec.labels = {{std::string(kContainerFolderLabel), options.folder},
                 {std::string(kContainerNodeLabel), options.node},
                 {std::string(kContainerJobLabel), options.job}};
  spec.memory_folders = image.volumes;
  if (!plan.deployment.empty()) {
    spec.labels.emplace(kContainerDeploymentLabel, plan.deployment);
  }
  const auto mount = [&spec](const std::string& source, std::string_view target, bool read_only) {
    if (source.empty()) return;
    std::erase(spec.memory_folders, target);  // Docker mounts one folder at a path
    spec.mounts.push_back(
        {.source = source, .target = std::string(target), .read_only = read_only});
  };
  mount(options.state, kStateTarget, false);
  mount(options.workspace, kWorkspaceTarget, false);
  mount(options.files, kFilesTarget, true);
  mount(options.secrets, kSecretsTarget, true);
  spec.network = plan.container.network;
  spec.memory = plan.container.memory;
  spec.nano_cpus = plan.container.nano_cpus;
  spec.processes = plan.container.processes;
  spec.log_size = std::min(kLogOfOutput * plan.max_output, kMostLog) + kMoreLog;
  return spec;
}

// A daemon that has answered before is probably being restarted, such as by an update. A pull that
// it interrupted begins again.
absl::StatusOr<ImageInfo> ProvideImage(const JobPlan& plan,
                                       const CommandContainer::Options& options) {
  std::optional<absl::Duration> until;
  for (;;) {
    auto image = options.engine.ProvideImage(plan.image, plan.time_limit, options.stopped);
    if (ReasonOf(image.status()) != "DOCKER_UNREACHABLE" || !options.engine.has_answered() ||
        options.stopped()) {
      return image;
    }
    if (!until) until = Now() + kRestartsWithin;
    if (Now() >= *until) return image;
    absl::SleepFor(kAskAgainAfter);
  }
}

}  // namespace

std::string ContainerNameOf(const std::string& node, const std::string& job) {
  return absl::StrCat("muster-", node, "-", job);
}

CommandContainer::CommandContainer(Options options)
    : options_(std::move(options)), name_(ContainerNameOf(options_.node, options_.job)) {}

absl::StatusOr<std::unique_ptr<RunningCommand>> CommandContainer::Start(
    const JobPlan& plan, Options options, const std::function<absl::Status()>& note) {
  ASSIGN_OR_RETURN(const auto image, ProvideImage(plan, options));
  if (options.stopped()) return errors::ContainerNotStarted("it was stopped before the start");
  RETURN_IF_ERROR(note());
  std::unique_ptr<CommandContainer> container(new CommandContainer(std::move(options)));
  const Options& own = container->options_;
  // One of that name belongs to another agent with the identity of this node.
  ASSIGN_OR_RETURN(const std::string id, own.engine.CreateContainer(SpecOf(plan, own, image)));
  if (own.identified) own.identified(id);
  if (absl::Status status = container->StartNow(); !status.ok()) {
    container->Remove();
    return status;
  }
  return container;
}

// Fails only if the container was certainly not started.
absl::Status CommandContainer::StartNow() {
  DockerEngine& engine = options_.engine;
  ASSIGN_OR_RETURN(streams_, ContainerStreams::Attach(engine, name_, passed_, Sink()));
  complete_ = true;
  if (options_.stopped()) return errors::ContainerNotStarted("it was stopped before the start");
  const absl::Status started = engine.StartContainer(name_);
  start_confirmed_ = started.ok();
  if (ReasonOf(started) != "CONTAINER_NOT_STARTED") return absl::OkStatus();
  const auto state = engine.InspectContainer(name_);
  return state.ok() && state->status == "created" ? started : absl::OkStatus();
}

std::unique_ptr<RunningCommand> CommandContainer::Adopt(Options options) {
  std::unique_ptr<CommandContainer> container(new CommandContainer(std::move(options)));
  container->adopted_ = true;
  return container;
}

ContainerOutputSink CommandContainer::Sink() {
  return [this](ContainerStream stream, std::string_view data) {
    const bool out = stream == ContainerStream::kStdout;
    options_.sink(out ? v1::JOB_STREAM_STDOUT : v1::JOB_STREAM_STDERR, data);
  };
}

bool CommandContainer::Wait(int wake, absl::Duration limit) {
  if (streams_ == nullptr && !finished_) {
    if (Now() >= reopen_at_) Reopen();
    if (streams_ == nullptr && !finished_) {
      pollfd wait = {wake, POLLIN, 0};
      poll(&wait, 1, PollMilliseconds(std::min(limit, reopen_at_ - Now())));
      return false;
    }
  }
  CheckStreams();  // they may have ended while they were opened
  if (streams_ == nullptr || finished_) return finished_;
  const absl::Duration patience = give_up_at_ ? *give_up_at_ - Now() : absl::InfiniteDuration();
  streams_->Wait(wake, std::min(limit, patience));
  CheckStreams();
  return finished_;
}

// Ends the wait once everything is known. Drops streams of no more use.
void CommandContainer::CheckStreams() {
  if (streams_ == nullptr || finished_) return;
  const absl::Status fault = streams_->fault();
  if (!fault.ok()) {
    Log(LogLevel::kWarning, "the output of a container is interrupted",
        {{"job", options_.job}, {"error", fault}});
    NoteAnswer(fault);
    // An ended container whose log cannot be read has no other output.
    if (complete_ && streams_->ended()) GiveUpOutputLater(fault);
    return Lose(kReopenAfter);
  }
  if (streams_->ended() && streams_->output_ended()) {
    if (complete_) return ReadEnd();
    // The log of a running container may lack its last line: read it again.
    return Lose(absl::ZeroDuration());
  }
  if (give_up_at_ && Now() >= *give_up_at_) return Lose(kReopenAfter);
  if (!give_up_at_ && (streams_->ended() || streams_->output_ended())) {
    give_up_at_ = Now() + kEndGrace;
  }
}

// The streams have reported the end. If the daemon does not confirm it, they are opened again.
void CommandContainer::ReadEnd() {
  const auto state = options_.engine.InspectContainer(name_);
  if (!state.ok() || !state->ended()) return Lose(kReopenAfter);
  if (output_lost_.ok() && streams_ != nullptr && streams_->missing()) {
    output_lost_ = errors::ContainerOutputLost(
        "Docker's log is full or differs from what was received: bytes may be missing or doubled");
  }
  if (output_lost_.ok() && end_unseen_) {
    output_lost_ = errors::ContainerOutputLost(
        "Docker was down when the container ended, or was started again before this was read, and "
        "may have lost the end of it");
  }
  end_.exit.exit_code = static_cast<int>(state->exit_code);
  end_.out_of_memory = state->out_of_memory;
  end_.started = state->started;
  end_.finished = state->finished;
  end_.output_lost = output_lost_;
  finished_ = true;
}

void CommandContainer::Lose(absl::Duration reopen_after) {
  streams_.reset();
  give_up_at_.reset();
  complete_ = false;
  reopen_at_ = Now() + reopen_after;
}

// Follows the container again. If that is not possible now, it is tried again later.
void CommandContainer::Reopen() {
  reopen_at_ = Now() + kReopenAfter;
  const auto state = options_.engine.InspectContainer(name_);
  NoteAnswer(state);
  if (absl::IsNotFound(state.status())) {
    failure_ = !removed_unstarted_ ? state.status()
               : HasRun()
                   ? errors::ContainerStateLost()
                   : errors::ContainerNotStarted("the agent or Docker ended before the start");
    finished_ = true;
  }
  if (!state.ok()) return;
  if (options_.identified) options_.identified(state->id);
  if (state->status == "created") return RemoveUnstarted();
  if (state->status == "removing") return;  // then it is not found
  if (state->ended() && !output_lost_.ok()) return ReadEnd();
  auto streams =
      ContainerStreams::Follow(options_.engine, name_, passed_, state->log_file_size, Sink());
  if (!streams.ok()) {
    if (state->ended()) GiveUpOutputLater(streams.status());
    return;
  }
  streams_ = *std::move(streams);
  complete_ = state->ended();
}

// Docker copies the output of a container only while the daemon runs.
void CommandContainer::NoteAnswer(const absl::StatusOr<ContainerState>& state) {
  if (ReasonOf(state.status()) == "DOCKER_UNREACHABLE") {
    if (!unreachable_since_) unreachable_since_ = absl::Now();
    return;
  }
  if (!state.ok()) return;
  if (state->ended() && state->finished && (adopted_ || unreachable_since_)) {
    const absl::Time end = *state->finished;
    const auto started = DaemonStartOf(options_.engine.socket());
    if (started ? end <= *started + kRestoresWithin
                : unreachable_since_ && end >= *unreachable_since_ - kNoticedWithin) {
      end_unseen_ = true;
    }
  }
  adopted_ = false;
  unreachable_since_.reset();
}

// A daemon that was killed while it started the container may have forgotten that.
bool CommandContainer::HasRun() const {
  return options_.has_run || start_confirmed_ || passed_.out.bytes() + passed_.err.bytes() > 0;
}

// A container that was not started has no effects. Its start may still be executed.
void CommandContainer::RemoveUnstarted() {
  if (!unstarted_since_) unstarted_since_ = Now();
  if (Now() - *unstarted_since_ < kStartGrace) return;
  removed_unstarted_ = options_.engine.RemoveContainer(name_).ok();
}

// Notes that the output of an ended container cannot be read. The outcome must not wait forever.
void CommandContainer::GiveUpOutputLater(const absl::Status& why) {
  if (!unreadable_since_) unreadable_since_ = Now();
  if (Now() - *unreadable_since_ >= kOutputGrace) output_lost_ = why;
}

void CommandContainer::Signal(int signal) {
  const absl::Status status = options_.engine.SignalContainer(name_, signal);
  if (status.ok() || absl::IsNotFound(status)) return;
  Log(LogLevel::kWarning, "a container cannot be stopped",
      {{"job", options_.job}, {"signal", signal}, {"error", status}});
}

absl::StatusOr<CommandEnd> CommandContainer::Result() {
  return failure_.ok() ? absl::StatusOr<CommandEnd>(end_) : failure_;
}

bool CommandContainer::Remove() {
  streams_.reset();
  const absl::Status status = options_.engine.RemoveContainer(name_);
  if (status.ok()) return true;
  Log(LogLevel::kWarning, "a container cannot be removed; remove it by hand",
      {{"container", name_}, {"error", status}});
  return false;
}

}  // namespace muster
