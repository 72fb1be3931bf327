#include "cli/supervisor/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "services/common/base/clock.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/secret_file.h"

namespace muster::supervisor {
namespace {

constexpr size_t kMaxSmallFile = 64 * 1024;
constexpr absl::Duration kSilentWait = absl::Seconds(2);

UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Runs in the child, between fork and exec. Returns an errno.
int ExecInChild(const SpawnOptions& options) {
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::umask(077);

  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd log(
      ::open(options.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!null.valid() || !log.valid()) return errno;
  if (::dup2(null.get(), STDIN_FILENO) < 0 || ::dup2(log.get(), STDOUT_FILENO) < 0 ||
      ::dup2(log.get(), STDERR_FILENO) < 0) {
    return errno;
  }
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  if (!options.pid_file.empty()) {
    const auto identity = IdentifyProcess(::getpid());
    if (!identity || !WritePidFile(options.pid_file, *identity).ok()) return EIO;
  }
  std::vector<char*> argv;
  for (const std::string& argument : options.argv) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  return errno;
}

}  // namespace

absl::Status WritePidFile(const std::string& path, const ProcessIdentity& identity) {
  const nlohmann::ordered_json json = {
      {"pid", identity.pid}, {"start_ticks", identity.start_ticks}, {"boot_id", identity.boot_id}};
  return WriteFileAtomically(path, json.dump() + "\n");
}

std::optional<ProcessIdentity> ReadPidFile(const std::string& path) {
  const auto text = ReadFileBounded(path, kMaxSmallFile);
  if (!text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("pid") || !json["pid"].is_number_integer() ||
      !json.contains("start_ticks") || !json["start_ticks"].is_number_unsigned() ||
      !json.contains("boot_id") || !json["boot_id"].is_string()) {
    return std::nullopt;
  }
  return ProcessIdentity{.pid = json["pid"].get<pid_t>(),
                         .start_ticks = json["start_ticks"].get<uint64_t>(),
                         .boot_id = json["boot_id"].get<std::string>()};
}

std::optional<Process> Process::Find(const ProcessIdentity& identity) {
  if (identity.pid <= 0) return std::nullopt;
  UniqueFd pidfd = OpenPidfd(identity.pid);
  // Check the identity after the descriptor was opened: from then on the pid cannot be reused.
  if (!pidfd.valid() || !IsRunning(identity)) return std::nullopt;
  return Process(identity.pid, std::move(pidfd));
}

void Process::Signal(int signal) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

bool Process::WaitForExit(absl::Duration limit) const {
  const absl::Duration until = SystemClock().MonotonicNow() + limit;
  while (true) {
    struct pollfd ended = {.fd = pidfd_.get(), .events = POLLIN};
    const int64_t left =
        std::max<int64_t>(absl::ToInt64Milliseconds(until - SystemClock().MonotonicNow()), 0);
    const int ready = ::poll(&ended, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

std::string Process::Reap() const {
  siginfo_t info = {};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd_.get()), &info, WEXITED) !=
      0) {
    return "ended";
  }
  if (info.si_code == CLD_EXITED) return absl::StrCat("exit code ", info.si_status);
  return absl::StrCat("killed by signal ", info.si_status, " (", ::strsignal(info.si_status), ")");
}

std::optional<Process> FindByPidFile(const std::string& path) {
  const auto identity = ReadPidFile(path);
  return identity ? Process::Find(*identity) : std::nullopt;
}

void StopProcess(const Process& process, absl::Duration grace,
                 const std::function<void()>& on_wait) {
  process.Signal(SIGTERM);
  process.Signal(SIGCONT);
  const absl::Duration silent = std::min(grace, kSilentWait);
  if (process.WaitForExit(silent)) return;
  if (on_wait) on_wait();
  if (process.WaitForExit(grace - silent)) return;
  process.Signal(SIGKILL);
  process.WaitForExit(absl::Seconds(10));
}

absl::StatusOr<Process> Process::Spawn(const SpawnOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "create a pipe for", options.argv[0]);
  const UniqueFd fault_in(ends[0]);
  UniqueFd fault_out(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoError(errno, "start", options.argv[0]);
  if (pid == 0) {
    const int fault = ExecInChild(options);
    (void)!::write(fault_out.get(), &fault, sizeof(fault));
    ::_exit(127);
  }
  Process process(pid, OpenPidfd(pid));
  fault_out.reset();
  // Exec closes the pipe.
  int fault = 0;
  if (::read(fault_in.get(), &fault, sizeof(fault)) == static_cast<ssize_t>(sizeof(fault))) {
    process.Reap();
    return ErrnoError(fault, "start", options.argv[0]);
  }
  return process;
}

}  // namespace muster::supervisor
