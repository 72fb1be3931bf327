#include "services/agent/jobs/job_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/agent/child.h"
#include "services/agent/jobs/final_record.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr absl::Duration kKillGrace = absl::Seconds(5);
constexpr absl::Duration kStartRetry = absl::Seconds(1);
constexpr BackoffOptions kDiskRetry = {absl::Seconds(1), absl::Seconds(10)};
// The limit of output after the end of the process, because a process that left the group could
// write forever. A pipe holds at most this much.
constexpr size_t kMaxLateOutput = size_t{1} << 20;
constexpr size_t kReadSize = size_t{64} << 10;

absl::Duration Now() { return SystemClock().MonotonicNow(); }

int PollMilliseconds(absl::Duration left) {
  if (left == absl::InfiniteDuration()) return -1;
  return static_cast<int>(std::clamp<int64_t>(
      absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))), 0, int64_t{3600} * 1000));
}

void SetVariable(std::vector<std::string>& environment, std::string_view entry) {
  const std::string prefix(entry.substr(0, entry.find('=') + 1));
  std::erase_if(environment, [&](const std::string& e) { return e.starts_with(prefix); });
  environment.emplace_back(entry);
}

void Drain(const UniqueFd& event) {
  eventfd_t value = 0;
  eventfd_read(event.get(), &value);
}

v1::JobRecord StartedRecord() {
  v1::JobRecord record;
  ToProto(absl::Now(), record.mutable_started()->mutable_time());
  return record;
}

}  // namespace

JobProcess::JobProcess(NodeJobFolder& folder, SpoolQuota& quota, std::string job, JobPlan plan,
                       std::function<void()> on_records)
    : folder_(folder),
      quota_(quota),
      job_(std::move(job)),
      plan_(std::move(plan)),
      on_records_(std::move(on_records)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void JobProcess::Stop(JobStop why) {
  JobStop none = JobStop::kNone;
  stop_.compare_exchange_strong(none, why);
  if (why == JobStop::kAgentStops) agent_stops_ = true;
  eventfd_write(wake_.get(), 1);
}

absl::StatusOr<SubprocessOptions> JobProcess::Options() {
  SubprocessOptions options;
  options.argv = plan_.argv;
  options.working_directory = plan_.directory;
  options.environment = ChildEnvironment();
  options.out = ChildOutput::Pipe();
  options.err = ChildOutput::Pipe();
  if (!plan_.user.empty()) {
    ASSIGN_OR_RETURN(auto user, ProcessUser::Find(plan_.user));
    if (geteuid() != 0 && user.uid != geteuid()) {
      return errors::UserNotPossible(plan_.user);
    }
    for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"HOME", user.home},
                                      {"SHELL", user.shell},
                                      {"USER", plan_.user},
                                      {"LOGNAME", plan_.user}}) {
      SetVariable(options.environment, absl::StrCat(name, "=", value));
    }
    if (user.uid != geteuid()) options.user = std::move(user);
  }
  for (const std::string& entry : plan_.environment) SetVariable(options.environment, entry);
  SetVariable(options.environment, absl::StrCat(ToAbsl(kJobVariable), "=", job_));
  options.before_start = [this](pid_t pid) {
    const auto mark = ProcessMark::Of(pid);
    return mark.ok() ? folder_.NoteProcess(*mark) : mark.status();
  };
  return options;
}

void JobProcess::Run() {
  auto options = Options();
  const absl::Duration began = Now();
  auto child = options.ok() ? Subprocess::Start(*std::move(options))
                            : absl::StatusOr<std::unique_ptr<Subprocess>>(options.status());
  if (!child.ok()) {
    Log(LogLevel::kWarning, "a job's command cannot be started",
        {{"job", job_}, {"error", child.status()}});
    AppendWithRetry(FinalRecord(v1::JOB_OUTCOME_FAILED, "COMMAND_NOT_STARTED",
                                ToStd(child.status().message())));
    return;
  }
  limit_at_ = began + plan_.time_limit;
  start_ = StartedRecord();
  OutputRecorder recorder(*folder_.log(), quota_, plan_.keep_output, plan_.max_output);
  ReadUntilExit(**child, recorder);
  const ExitStatus exit = *(*child)->Wait(absl::InfiniteDuration());
  if (start_) AppendWithRetry(*std::move(start_));
  if (auto cut = recorder.Finish()) AppendWithRetry(*std::move(cut));
  spooled_ = recorder.spent();
  AppendWithRetry(MakeFinal(exit, Now() - began, recorder));
}

void JobProcess::ReadUntilExit(Subprocess& child, OutputRecorder& recorder) {
  UniqueFd out = child.TakeStdout();
  UniqueFd err = child.TakeStderr();
  for (const UniqueFd* pipe : {&out, &err}) fcntl(pipe->get(), F_SETFL, O_NONBLOCK);
  for (bool ended = false; !ended;) {
    std::array<pollfd, 4> waits = {{{out.get(), POLLIN, 0},
                                    {err.get(), POLLIN, 0},
                                    {child.pidfd(), POLLIN, 0},
                                    {wake_.get(), POLLIN, 0}}};
    const absl::Duration now = Now();
    const absl::Duration next =
        std::min({EndIfDue(child, now), recorder.flush_at(), StoreStart(now)});
    poll(waits.data(), waits.size(), PollMilliseconds(next - now));
    ended = waits[2].revents != 0;
    Drain(wake_);
    if (ended) child.Wait(absl::InfiniteDuration());  // kills its group before the last read
    const size_t limit = ended ? kMaxLateOutput : kReadSize;
    bool news = Read(out, v1::JOB_STREAM_STDOUT, recorder, limit);
    news = Read(err, v1::JOB_STREAM_STDERR, recorder, limit) || news;
    news = recorder.Flush(Now()) || news;
    if (news) on_records_();
  }
}

bool JobProcess::Read(UniqueFd& pipe, v1::JobStream stream, OutputRecorder& recorder,
                      size_t limit) {
  std::array<char, kReadSize> buffer;
  bool news = false;
  for (size_t total = 0; pipe.valid() && total < limit;) {
    const ssize_t n = read(pipe.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      pipe.reset();  // poll ignores -1
      break;
    }
    total += static_cast<size_t>(n);
    news = recorder.Add(stream, {buffer.data(), static_cast<size_t>(n)}, Now()) || news;
  }
  return news;
}

absl::Duration JobProcess::EndIfDue(Subprocess& child, absl::Duration now) {
  if (kill_at_ == absl::InfiniteDuration()) {
    if (now >= limit_at_) Stop(JobStop::kTimedOut);
    ended_by_ = stop_;
    if (ended_by_ == JobStop::kNone) return limit_at_;
    child.Signal(SIGTERM);
    kill_at_ = now + kKillGrace;
  }
  if (now >= kill_at_ && !std::exchange(killed_, true)) child.Signal(SIGKILL);
  return killed_ ? absl::InfiniteDuration() : kill_at_;
}

v1::JobRecord JobProcess::MakeFinal(const ExitStatus& exit, absl::Duration took,
                                    const OutputRecorder& recorder) const {
  v1::JobRecord record;
  switch (ended_by_) {
    case JobStop::kNone:
      record = FinalRecord(v1::JOB_OUTCOME_EXITED, "", "");
      record.mutable_final()->set_exit_code(exit.exit_code);
      break;
    case JobStop::kCancelled:
      record = FinalRecord(v1::JOB_OUTCOME_CANCELLED, "", "");
      break;
    case JobStop::kTimedOut:
      record = FinalRecord(
          v1::JOB_OUTCOME_TIMED_OUT, "TIME_LIMIT",
          absl::StrCat("it ran for longer than ", absl::FormatDuration(absl::Ceil(
                                                      plan_.time_limit, absl::Milliseconds(100)))));
      break;
    case JobStop::kAgentStops:
      record = FinalRecord(v1::JOB_OUTCOME_LOST, "AGENT_STOPPED",
                           "the agent was stopped, and ended the command");
      break;
  }
  v1::JobRecord::Final& final = *record.mutable_final();
  final.set_signal(exit.signal);
  ToProto(took, final.mutable_duration());
  final.set_stdout_bytes(recorder.bytes(v1::JOB_STREAM_STDOUT));
  final.set_stderr_bytes(recorder.bytes(v1::JOB_STREAM_STDERR));
  return record;
}

absl::Duration JobProcess::StoreStart(absl::Duration now) {
  if (!start_) return absl::InfiniteDuration();
  if (now < store_start_at_) return store_start_at_;
  const absl::Status status = folder_.log()->Append(*start_);
  if (status.ok()) {
    start_.reset();
    on_records_();
    return absl::InfiniteDuration();
  }
  if (store_start_at_ == absl::ZeroDuration()) {
    Log(LogLevel::kError, "the start of a job cannot be stored; trying again",
        {{"job", job_}, {"error", status}});
  }
  return store_start_at_ = now + kStartRetry;
}

void JobProcess::AppendWithRetry(v1::JobRecord record) {
  Backoff backoff(kDiskRetry);
  absl::Status failure;
  for (;;) {
    const absl::Status status = folder_.log()->Append(record);
    if (status.ok()) return on_records_();
    if (status != failure) {
      Log(LogLevel::kError, "a record of a job cannot be stored; trying again",
          {{"job", job_}, {"error", status}});
    }
    failure = status;
    // The next process reports the job as lost. An invalid record stays invalid.
    if (agent_stops_ || absl::IsInvalidArgument(status)) return;
    pollfd wake = {wake_.get(), POLLIN, 0};
    poll(&wake, 1, PollMilliseconds(backoff.Next(std::nullopt)));
    Drain(wake_);
  }
}

}  // namespace muster
