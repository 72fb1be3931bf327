#include "services/agent/jobs/command_container.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/agent/jobs/poll_time.h"
#include "services/common/base/clock.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/docker.h"
#include "services/common/errors/jobs.h"

namespace muster {
namespace {

// The daemon's log has the capacity for the output of the job, and for the frames of short lines.
constexpr int64_t kMoreLog = int64_t{64} << 20;
constexpr absl::Duration kReopenAfter = absl::Seconds(1);
// The daemon reports the end of a container some milliseconds before or after that of its output.
constexpr absl::Duration kEndGrace = absl::Seconds(10);

absl::Duration Now() { return SystemClock().MonotonicNow(); }

// Returns OK if the node has this image, after a pull if necessary.
absl::Status ProvideImage(DockerEngine& engine, const std::string& image, absl::Duration limit,
                          const std::function<bool()>& stopped) {
  absl::Status found = engine.FindImage(image).status();
  if (!absl::IsNotFound(found) || image.find('@') == std::string::npos) return found;
  RETURN_IF_ERROR(engine.PullImage(image, limit, stopped));
  return engine.FindImage(image).status();
}

ContainerSpec SpecOf(const JobPlan& plan, const std::string& node, const std::string& job) {
  ContainerSpec spec;
  spec.name = ContainerNameOf(node, job);
  spec.image = plan.image;
  spec.command = plan.argv;
  spec.environment = plan.environment;
  spec.environment.push_back(absl::StrCat("MUSTER_JOB=", job));
  spec.user = plan.user;
  spec.labels = {{std::string(kContainerNodeLabel), node}, {std::string(kContainerJobLabel), job}};
  spec.network = plan.container.network;
  spec.memory = plan.container.memory;
  spec.nano_cpus = plan.container.nano_cpus;
  spec.processes = plan.container.processes;
  spec.log_size = 2 * plan.max_output + kMoreLog;
  return spec;
}

}  // namespace

std::string ContainerNameOf(const std::string& node, const std::string& job) {
  return absl::StrCat("muster-", node, "-", job);
}

CommandContainer::CommandContainer(Options options)
    : options_(std::move(options)), name_(ContainerNameOf(options_.node, options_.job)) {}

absl::StatusOr<std::unique_ptr<RunningCommand>> CommandContainer::Start(
    const JobPlan& plan, Options options, const std::function<absl::Status()>& note) {
  RETURN_IF_ERROR(ProvideImage(options.engine, plan.image, plan.time_limit, options.stopped));
  RETURN_IF_ERROR(note());
  std::unique_ptr<CommandContainer> container(new CommandContainer(std::move(options)));
  // One of that name belongs to another agent with the identity of this node.
  const Options& own = container->options_;
  RETURN_IF_ERROR(own.engine.CreateContainer(SpecOf(plan, own.node, own.job)).status());
  if (absl::Status status = container->StartNow(); !status.ok()) {
    container->Remove();
    return status;
  }
  return container;
}

absl::Status CommandContainer::StartNow() {
  DockerEngine& engine = options_.engine;
  ASSIGN_OR_RETURN(streams_, ContainerStreams::Attach(engine, name_, Sink()));
  complete_ = true;
  const absl::Status started = engine.StartContainer(name_);
  if (started.ok()) return started;
  // The daemon may have started it all the same.
  const auto state = engine.InspectContainer(name_);
  return state.ok() && state->status != "created" ? absl::OkStatus() : started;
}

std::unique_ptr<RunningCommand> CommandContainer::Adopt(Options options) {
  return std::unique_ptr<RunningCommand>(new CommandContainer(std::move(options)));
}

ContainerOutputSink CommandContainer::Sink() {
  return [this](ContainerStream stream, std::string_view data) {
    const bool out = stream == ContainerStream::kStdout;
    (out ? received_.out : received_.err) += static_cast<int64_t>(data.size());
    options_.sink(out ? v1::JOB_STREAM_STDOUT : v1::JOB_STREAM_STDERR, data);
  };
}

bool CommandContainer::Wait(int wake, absl::Duration limit) {
  if (!failure_.ok()) return true;
  if (streams_ == nullptr) {
    if (Now() >= reopen_at_) Reopen();
    if (streams_ == nullptr) {
      pollfd wait = {wake, POLLIN, 0};
      poll(&wait, 1, PollMilliseconds(std::min(limit, reopen_at_ - Now())));
      return !failure_.ok();
    }
  }
  if (CheckStreams()) return true;  // they may have ended while they were opened
  if (streams_ == nullptr) return false;
  const absl::Duration patience = give_up_at_ ? *give_up_at_ - Now() : absl::InfiniteDuration();
  streams_->Wait(wake, std::min(limit, patience));
  return CheckStreams();
}

// Returns true once everything is known. Drops streams of no more use.
bool CommandContainer::CheckStreams() {
  if (streams_->ended() && streams_->output_ended() && streams_->fault().ok()) {
    if (complete_ && ReadEnd()) return true;
    // The daemon was lost again, or the log of the running container lacks its last line.
    const bool again = complete_;
    Lose();
    if (!again) reopen_at_ = Now();
  } else if (!streams_->fault().ok() || (give_up_at_ && Now() >= *give_up_at_)) {
    Log(LogLevel::kWarning, "the output of a container is interrupted",
        {{"job", options_.job}, {"error", streams_->fault()}});
    Lose();
  } else if (!give_up_at_ && (streams_->ended() || streams_->output_ended())) {
    give_up_at_ = Now() + kEndGrace;
  }
  return false;
}

// Returns false if the daemon does not answer now.
bool CommandContainer::ReadEnd() {
  const auto state = options_.engine.InspectContainer(name_);
  if (absl::IsNotFound(state.status())) failure_ = state.status();
  if (!state.ok()) return !failure_.ok();
  end_.exit.exit_code = static_cast<int>(state->exit_code);
  end_.out_of_memory = state->out_of_memory;
  return true;
}

void CommandContainer::Lose() {
  streams_.reset();
  give_up_at_.reset();
  complete_ = false;
  reopen_at_ = Now() + kReopenAfter;
}

// Follows the container again. If that is not possible now, it is tried again later.
void CommandContainer::Reopen() {
  reopen_at_ = Now() + kReopenAfter;
  const auto state = options_.engine.InspectContainer(name_);
  if (absl::IsNotFound(state.status())) failure_ = state.status();
  if (!state.ok()) return;
  if (state->status == "created") {
    failure_ = errors::ContainerNotStarted("the agent ended before the start");
    return;
  }
  auto streams = ContainerStreams::Follow(options_.engine, name_, received_, Sink());
  if (!streams.ok()) return;
  streams_ = *std::move(streams);
  complete_ = state->ended();
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

void CommandContainer::Remove() {
  streams_.reset();
  const absl::Status status = options_.engine.RemoveContainer(name_);
  if (status.ok()) return;
  Log(LogLevel::kWarning, "a container cannot be removed; remove it by hand",
      {{"container", name_}, {"error", status}});
}

}  // namespace muster
