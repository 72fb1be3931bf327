#include "services/agent/jobs/command_process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/agent/child.h"
#include "services/common/base/poll_time.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"

namespace muster {
namespace {

// The limit of output after the end of the process, because a process that left the group could
// write forever. A pipe holds at most this much.
constexpr size_t kMaxLateOutput = size_t{1} << 20;
constexpr size_t kReadSize = size_t{64} << 10;

void SetVariable(std::vector<std::string>& environment, std::string_view entry) {
  const std::string prefix(entry.substr(0, entry.find('=') + 1));
  std::erase_if(environment, [&](const std::string& e) { return e.starts_with(prefix); });
  environment.emplace_back(entry);
}

absl::StatusOr<SubprocessOptions> OptionsOf(const JobPlan& plan, const std::string& job) {
  SubprocessOptions options;
  options.argv = plan.argv;
  options.working_directory = plan.directory;
  options.environment = ChildEnvironment();
  options.out = ChildOutput::Pipe();
  options.err = ChildOutput::Pipe();
  if (!plan.user.empty()) {
    ASSIGN_OR_RETURN(auto user, ProcessUser::Find(plan.user));
    if (geteuid() != 0 && user.uid != geteuid()) return errors::UserNotPossible(plan.user);
    for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"HOME", user.home},
                                      {"SHELL", user.shell},
                                      {"USER", plan.user},
                                      {"LOGNAME", plan.user}}) {
      SetVariable(options.environment, absl::StrCat(name, "=", value));
    }
    if (user.uid != geteuid()) options.user = std::move(user);
  }
  for (const std::string& entry : plan.environment) SetVariable(options.environment, entry);
  SetVariable(options.environment, absl::StrCat(ToAbsl(kJobVariable), "=", job));
  return options;
}

}  // namespace

CommandProcess::CommandProcess(std::unique_ptr<Subprocess> child, JobOutputSink sink)
    : child_(std::move(child)),
      sink_(std::move(sink)),
      out_(child_->TakeStdout()),
      err_(child_->TakeStderr()) {
  for (const UniqueFd* pipe : {&out_, &err_}) fcntl(pipe->get(), F_SETFL, O_NONBLOCK);
}

absl::StatusOr<std::unique_ptr<RunningCommand>> CommandProcess::Start(
    const JobPlan& plan, const std::string& job, JobOutputSink sink,
    const std::function<absl::Status(const ProcessMark&)>& note) {
  ASSIGN_OR_RETURN(auto options, OptionsOf(plan, job));
  options.before_start = [&](pid_t pid) {
    const auto mark = ProcessMark::Of(pid);
    return mark.ok() ? note(*mark) : mark.status();
  };
  ASSIGN_OR_RETURN(auto child, Subprocess::Start(std::move(options)));
  return std::unique_ptr<RunningCommand>(new CommandProcess(std::move(child), std::move(sink)));
}

bool CommandProcess::Wait(int wake, absl::Duration limit) {
  std::array<pollfd, 4> waits = {{{out_.get(), POLLIN, 0},
                                  {err_.get(), POLLIN, 0},
                                  {child_->pidfd(), POLLIN, 0},
                                  {wake, POLLIN, 0}}};
  poll(waits.data(), waits.size(), PollMilliseconds(limit));
  const bool ended = waits[2].revents != 0;
  if (ended) child_->Wait(absl::InfiniteDuration());  // kills its group before the last read
  const size_t most = ended ? kMaxLateOutput : kReadSize;
  Read(out_, v1::JOB_STREAM_STDOUT, most);
  Read(err_, v1::JOB_STREAM_STDERR, most);
  return ended;
}

void CommandProcess::Read(UniqueFd& pipe, v1::JobStream stream, size_t limit) {
  std::array<char, kReadSize> buffer;
  for (size_t total = 0; pipe.valid() && total < limit;) {
    const ssize_t n = read(pipe.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      pipe.reset();  // poll ignores -1
      break;
    }
    total += static_cast<size_t>(n);
    sink_(stream, {buffer.data(), static_cast<size_t>(n)});
  }
}

absl::StatusOr<CommandEnd> CommandProcess::Result() {
  return CommandEnd{.exit = *child_->Wait(absl::InfiniteDuration())};
}

}  // namespace muster
