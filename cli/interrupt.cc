#include "cli/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <thread>

#include "cli/exit_code.h"
#include "services/common/base/mutex.h"

namespace muster::cli {
namespace {

struct State {
  Mutex mutex;
  CondVar changed;
  bool interrupted ABSL_GUARDED_BY(mutex) = false;
  std::map<int, std::function<void()>> hooks ABSL_GUARDED_BY(mutex);
  int next_id ABSL_GUARDED_BY(mutex) = 0;
};

// Never destroyed: the signal thread uses it until the process exits.
State& SharedState() {
  static State* state = new State;
  return *state;
}

void OnSignal() {
  State& state = SharedState();
  const MutexLock lock(state.mutex);
  if (state.interrupted) ::_exit(kExitInterrupted);
  state.interrupted = true;
  for (const auto& [id, hook] : state.hooks) hook();
  state.changed.NotifyAll();
}

}  // namespace

void CatchInterrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int signal = 0;
    while (sigwait(&signals, &signal) == 0) OnSignal();
  }).detach();
}

bool Interrupted() {
  State& state = SharedState();
  const MutexLock lock(state.mutex);
  return state.interrupted;
}

bool SleepUnlessInterrupted(absl::Duration duration) {
  State& state = SharedState();
  MutexLock lock(state.mutex);
  state.changed.WaitFor(state.mutex, duration, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
    return state.interrupted;
  });
  return !state.interrupted;
}

InterruptHook::InterruptHook(std::function<void()> on_interrupt)
    : id_([&] {
        State& state = SharedState();
        const MutexLock lock(state.mutex);
        if (state.interrupted) on_interrupt();
        state.hooks[state.next_id] = std::move(on_interrupt);
        return state.next_id++;
      }()) {}

InterruptHook::~InterruptHook() {
  State& state = SharedState();
  const MutexLock lock(state.mutex);
  state.hooks.erase(id_);
}

}  // namespace muster::cli
