#include "services/common/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/clock.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/mutex.h"
#include "services/common/base/poll_time.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

// The descriptors of a child are moved to this number and above before they get their numbers
// there: so none closes another.
constexpr int kParkingFd = 100;

// After the child's end only this much is still read: a process that fled the group could write
// for ever. Twice what a pipe holds.
constexpr size_t kMaxLateOutput = size_t{128} * 1024;

absl::Status Check(const SubprocessOptions& options) {
  if (options.argv.empty() || options.argv[0].empty())
    return errors::InvalidProcessCommand("the command is empty");
  for (const std::string& argument : options.argv) {
    if (argument.find('\0') != std::string::npos)
      return errors::InvalidProcessCommand("an argument contains a NUL byte");
  }
  for (const std::string& entry : options.environment) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || entry.find('\0') != std::string::npos) {
      return errors::InvalidProcessCommand(
          "an environment entry is not NAME=value");  // its value may be a secret
    }
  }
  if (options.out.kind == ChildOutput::Kind::kSameAsStdout) {
    return errors::InvalidProcessCommand("stdout cannot be redirected to itself");
  }
  if (!options.working_directory.empty()) {
    struct stat info;
    if (stat(options.working_directory.c_str(), &info) != 0) {
      return ErrnoError(errno, "enter working directory", options.working_directory);
    }
  }
  return absl::OkStatus();
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// A parent's copy of a descriptor for the child, out of the way of the numbers given there.
absl::StatusOr<UniqueFd> Park(int fd) {
  UniqueFd parked(fcntl(fd, F_DUPFD_CLOEXEC, kParkingFd));
  if (!parked.valid())
    return ErrnoError(errno, "duplicate", ToStd(absl::StrCat("descriptor ", fd)));
  return parked;
}

// The child's end of one output stream, and the parent's if there is a pipe.
struct StreamEnds {
  UniqueFd child;
  UniqueFd parent;
};

absl::StatusOr<StreamEnds> OpenStream(const ChildOutput& output, int number, int child_stdout) {
  StreamEnds ends;
  UniqueFd opened;
  int source = number;
  switch (output.kind) {
    case ChildOutput::Kind::kSameAsStdout:
      source = child_stdout;
      break;
    case ChildOutput::Kind::kNull:
    case ChildOutput::Kind::kFile: {
      const bool null = output.kind == ChildOutput::Kind::kNull;
      const std::string path = null ? "/dev/null" : output.path;
      opened.reset(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | (null ? 0 : O_CREAT),
                        S_IRUSR | S_IWUSR));
      if (!opened.valid()) return ErrnoError(errno, "open", path);
      source = opened.get();
      break;
    }
    case ChildOutput::Kind::kPipe:
    case ChildOutput::Kind::kTail: {
      std::array<int, 2> pipe_ends;
      if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return ErrnoError(errno, "make", "a pipe");
      ends.parent.reset(pipe_ends[0]);
      opened.reset(pipe_ends[1]);
      source = opened.get();
      break;
    }
  }
  ASSIGN_OR_RETURN(ends.child, Park(source));
  return ends;
}

// posix_spawn's two argument objects with their clean-up.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // Descriptor i of `parked` becomes i in the child, and all others are closed there.
  void SetDescriptors(const std::vector<UniqueFd>& parked) {
    for (size_t i = 0; i < parked.size(); ++i) {
      posix_spawn_file_actions_adddup2(&actions_, parked[i].get(), static_cast<int>(i));
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, static_cast<int>(parked.size()));
  }

  int Spawn(const SubprocessOptions& options, pid_t* pid) {
    if (!options.working_directory.empty()) {
      posix_spawn_file_actions_addchdir_np(&actions_, options.working_directory.c_str());
    }
    return posix_spawnp(pid, options.argv[0].c_str(), &actions_, &attributes_,
                        Pointers(options.argv).data(), Pointers(options.environment).data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

absl::StatusOr<pid_t> Spawn(const SubprocessOptions& options, const std::vector<UniqueFd>& parked) {
  SpawnPlan plan;
  plan.SetDescriptors(parked);
  pid_t pid = 0;
  const int error = plan.Spawn(options, &pid);
  if (error != 0) return ErrnoError(error, "start", options.argv[0]);
  return pid;
}

// Returns the program's path by this process's PATH; a name with a slash as it is.
std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  if (name.find('/') != std::string::npos || path == nullptr) return name;
  for (const absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    std::string program = absl::StrCat(folder, "/", name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return name;
}

absl::StatusOr<pid_t> Fork(const SubprocessOptions& options, const std::vector<UniqueFd>& parked) {
  std::vector<int> descriptors;
  descriptors.reserve(parked.size());
  for (const UniqueFd& fd : parked) descriptors.push_back(fd.get());
  std::vector<std::string> args = options.argv;
  if (!options.user) args[0] = FindProgram(args[0]);
  const std::vector<char*> argv = Pointers(args);
  const std::vector<char*> environment = Pointers(options.environment);
  return ForkExec({.argv = argv.data(),
                   .environment = environment.data(),
                   .working_directory = &options.working_directory,
                   .descriptors = &descriptors,
                   .user = options.user ? &*options.user : nullptr},
                  options.before_start);
}

}  // namespace

// Reads a pipe on its own thread and keeps the last bytes. Thread-safe.
class Subprocess::TailReader {
 public:
  TailReader(UniqueFd pipe, size_t limit)
      : limit_(limit), pipe_(std::move(pipe)), stop_(eventfd(0, EFD_CLOEXEC)) {
    fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
    thread_ = std::thread([this] { Read(); });
  }
  ~TailReader() { Finish(); }

  // Takes in what the pipe still holds, and ends. Call it when the child has ended.
  void Finish() {
    if (!thread_.joinable()) return;
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  std::string Tail() const {
    MutexLock lock(mutex_);
    return tail_.size() > limit_ ? tail_.substr(tail_.size() - limit_) : tail_;
  }

 private:
  void Read() {
    std::array<pollfd, 2> waits = {{{pipe_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    for (;;) {
      if (poll(waits.data(), waits.size(), -1) < 0) continue;  // EINTR
      const bool last = waits[1].revents != 0;
      if (!ReadAvailable() || last) return;
    }
  }

  // False at the end of the stream.
  bool ReadAvailable() {
    std::array<char, 16 * 1024> buffer;
    for (size_t total = 0; total < kMaxLateOutput;) {
      const ssize_t n = read(pipe_.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno == EAGAIN;
      if (n == 0) return false;
      total += static_cast<size_t>(n);
      MutexLock lock(mutex_);
      tail_.append(buffer.data(), static_cast<size_t>(n));
      if (tail_.size() > 2 * limit_) tail_.erase(0, tail_.size() - limit_);
    }
    return true;
  }

  const size_t limit_;
  const UniqueFd pipe_;
  const UniqueFd stop_;
  mutable Mutex mutex_;
  std::string tail_ ABSL_GUARDED_BY(mutex_);  // at most twice limit_ between reads
  std::thread thread_;
};

std::string ExitStatus::Describe() const {
  if (signal == 0) return absl::StrCat("exit code ", exit_code);
  const char* name = sigdescr_np(signal);
  return absl::StrCat("killed by signal ", signal, " (", name != nullptr ? name : "unknown", ")");
}

absl::StatusOr<std::unique_ptr<Subprocess>> Subprocess::Start(SubprocessOptions options) {
  RETURN_IF_ERROR(Check(options));
  std::vector<UniqueFd> parked;
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSIGN_OR_RETURN(UniqueFd in, Park(null.get()));
  parked.push_back(std::move(in));
  ASSIGN_OR_RETURN(StreamEnds out, OpenStream(options.out, STDOUT_FILENO, -1));
  parked.push_back(std::move(out.child));
  ASSIGN_OR_RETURN(StreamEnds err, OpenStream(options.err, STDERR_FILENO, parked[1].get()));
  parked.push_back(std::move(err.child));
  for (const int fd : options.pass_fds) {
    ASSIGN_OR_RETURN(UniqueFd passed, Park(fd));
    parked.push_back(std::move(passed));
  }

  ASSIGN_OR_RETURN(const pid_t pid, options.user || options.before_start ? Fork(options, parked)
                                                                         : Spawn(options, parked));
  // glibc 2.36 declares pidfd_open for C alone. The number is ours until we reap the child.
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    const int error = errno;
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return ErrnoError(error, "watch", options.argv[0]);
  }
  parked.clear();  // the child's ends of pipes, or they would never end
  std::unique_ptr<Subprocess> process(new Subprocess(pid, std::move(pidfd)));
  if (options.out.kind == ChildOutput::Kind::kTail) {
    process->stdout_tail_ =
        std::make_unique<TailReader>(std::move(out.parent), options.out.tail_bytes);
  }
  if (options.err.kind == ChildOutput::Kind::kTail) {
    process->stderr_tail_ =
        std::make_unique<TailReader>(std::move(err.parent), options.err.tail_bytes);
  }
  MutexLock lock(process->mutex_);
  process->stdout_ = std::move(out.parent);
  process->stderr_ = std::move(err.parent);
  return process;
}

Subprocess::Subprocess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

Subprocess::~Subprocess() {
  Signal(SIGKILL);
  Wait(absl::InfiniteDuration());
}

std::optional<ExitStatus> Subprocess::Wait(absl::Duration limit) {
  const absl::Duration end = SystemClock().MonotonicNow() + limit;
  for (;;) {
    pollfd ended = {pidfd_.get(), POLLIN, 0};
    const absl::Duration left = end - SystemClock().MonotonicNow();
    if (poll(&ended, 1, PollMilliseconds(left)) > 0) return Reap();
    if (left <= absl::ZeroDuration()) return std::nullopt;
  }
}

ExitStatus Subprocess::Reap() {
  MutexLock lock(mutex_);
  if (exit_) return *exit_;
  // Until it is reaped the dead child keeps its number, so this cannot hit a stranger's group.
  kill(-pid_, SIGKILL);
  siginfo_t info = {};
  while (waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED) != 0 && errno == EINTR) {
  }
  ExitStatus status;
  (info.si_code == CLD_EXITED ? status.exit_code : status.signal) = info.si_status;
  if (stdout_tail_) stdout_tail_->Finish();
  if (stderr_tail_) stderr_tail_->Finish();
  exit_ = status;
  return status;
}

void Subprocess::Signal(int signal) {
  MutexLock lock(mutex_);
  if (!exit_) kill(-pid_, signal);
}

ExitStatus Subprocess::Stop(absl::Duration grace) {
  Signal(SIGTERM);
  if (const auto status = Wait(grace)) return *status;
  Signal(SIGKILL);
  return *Wait(absl::InfiniteDuration());
}

UniqueFd Subprocess::TakeStdout() {
  MutexLock lock(mutex_);
  return std::move(stdout_);
}

UniqueFd Subprocess::TakeStderr() {
  MutexLock lock(mutex_);
  return std::move(stderr_);
}

std::string Subprocess::StdoutTail() const { return stdout_tail_ ? stdout_tail_->Tail() : ""; }

std::string Subprocess::StderrTail() const { return stderr_tail_ ? stderr_tail_->Tail() : ""; }

std::vector<std::string> AllowListedEnvironment(const std::vector<std::string_view>& names) {
  std::vector<std::string> allowed;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (std::find(names.begin(), names.end(), name) != names.end()) allowed.emplace_back(text);
  }
  return allowed;
}

}  // namespace muster
