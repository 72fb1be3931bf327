#include "services/common/base/fork_exec.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

// Descriptors from this number on do not collide with those of the child.
constexpr int kParkingFd = 100;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

absl::StatusOr<Pipe> MakeParkedPipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoError(errno, "make", "a pipe");
  const Pipe low = {UniqueFd(ends[0]), UniqueFd(ends[1])};
  Pipe parked = {UniqueFd(fcntl(ends[0], F_DUPFD_CLOEXEC, kParkingFd)),
                 UniqueFd(fcntl(ends[1], F_DUPFD_CLOEXEC, kParkingFd))};
  if (!parked.read.valid() || !parked.write.valid()) return ErrnoError(errno, "keep", "a pipe");
  return parked;
}

// From here to the end of Child: only system calls, which are safe between fork and exec in a
// process with threads. glibc's set*id functions would signal the threads of the parent.
bool Become(const ProcessUser& user) {
  return syscall(SYS_setgroups, user.groups.size(), user.groups.data()) == 0 &&
         syscall(SYS_setresgid, user.gid, user.gid, user.gid) == 0 &&
         syscall(SYS_setresuid, user.uid, user.uid, user.uid) == 0;
}

void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Before it waits, the child closes every inherited descriptor: sockets and locks of the parent,
// and the pipe by which the parent would release another held child. Two children that kept each
// other's pipe would wait forever after the parent's death.
[[noreturn]] void Child(const ForkPlan& plan, int go, int report) {
  const int count = static_cast<int>(plan.descriptors->size());
  const int own_go = count + 1;
  for (int i = 0; i < count; ++i) dup2((*plan.descriptors)[static_cast<size_t>(i)], i);
  dup3(report, count, O_CLOEXEC);
  dup3(go, own_go, O_CLOEXEC);
  syscall(SYS_close_range, own_go + 1, ~0U, 0);
  setsid();
  ResetSignals();
  umask(022);  // the usual one: the parent's protects its secrets
  char byte = 0;
  if (read(own_go, &byte, 1) != 1) _exit(127);  // the parent refused it, or died
  const bool ready =
      (plan.user == nullptr || Become(*plan.user)) &&
      (plan.working_directory->empty() || chdir(plan.working_directory->c_str()) == 0);
  if (ready) execve(plan.argv[0], plan.argv, plan.environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(count, &error, sizeof(error));
  _exit(127);
}

// Blocks all signals, so that no handler of this process runs in the child.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Releases the child, and returns the errno of its start, or 0.
int Release(Pipe& go, Pipe& report) {
  const char byte = 1;
  if (write(go.write.get(), &byte, 1) != 1) return errno;
  int error = 0;
  ssize_t n = 0;
  while ((n = read(report.read.get(), &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  return n == static_cast<ssize_t>(sizeof(error)) ? error : 0;
}

}  // namespace

absl::StatusOr<ProcessUser> ProcessUser::Find(const std::string& name) {
  std::array<char, 16 * 1024> buffer;
  passwd entry = {};
  passwd* found = nullptr;
  getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    return errors::NoSuchUser(name);
  }
  ProcessUser user;
  user.uid = entry.pw_uid;
  user.gid = entry.pw_gid;
  user.home = entry.pw_dir;
  user.shell = entry.pw_shell;
  int count = 64;
  user.groups.resize(static_cast<size_t>(count));
  if (getgrouplist(name.c_str(), entry.pw_gid, user.groups.data(), &count) < 0) {
    user.groups.resize(static_cast<size_t>(count));
    getgrouplist(name.c_str(), entry.pw_gid, user.groups.data(), &count);
  }
  user.groups.resize(static_cast<size_t>(count));
  return user;
}

absl::StatusOr<pid_t> ForkExec(const ForkPlan& plan,
                               const std::function<absl::Status(pid_t)>& before_start) {
  ASSIGN_OR_RETURN(Pipe go, MakeParkedPipe());
  ASSIGN_OR_RETURN(Pipe report, MakeParkedPipe());
  pid_t pid = 0;
  {
    const SignalsBlocked blocked;
    pid = fork();
    if (pid == 0) Child(plan, go.read.get(), report.write.get());
  }
  if (pid < 0) return ErrnoError(errno, "start", plan.argv[0]);
  go.read.reset();
  report.write.reset();
  absl::Status status = before_start ? before_start(pid) : absl::OkStatus();
  if (status.ok()) {
    const int error = Release(go, report);
    if (error == 0) return pid;
    status = ErrnoError(error, "start", plan.argv[0]);
  }
  go.write.reset();  // a held child exits then
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace muster
