#include "services/common/base/process_setup.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/synchronization/mutex.h"
#include "services/common/base/errno_error.h"

namespace muster {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

absl::Status SetUpProcess() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  signal(SIGPIPE, SIG_IGN);
  umask(S_IRWXG | S_IRWXO);
  const rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0) {
    return ErrnoError(errno, "disable", "core dumps");
  }
  return absl::OkStatus();
}

SignalWaiter::SignalWaiter() : stop_(eventfd(0, EFD_CLOEXEC)) {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC));
}

SignalWaiter::~SignalWaiter() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

int SignalWaiter::Wait() {
  if (received_ >= 0) return received_;
  std::array<pollfd, 2> waits = {{{signals_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
  while (poll(waits.data(), waits.size(), -1) < 0) {  // EINTR
  }
  signalfd_siginfo info = {};
  if (waits[0].revents != 0 && read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    received_ = static_cast<int>(info.ssi_signo);
  } else {
    received_ = 0;
  }
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return received_;
}

void SignalWaiter::RequestStop() { eventfd_write(stop_.get(), 1); }

}  // namespace muster
