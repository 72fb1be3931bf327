#include "cli/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>

#include "cli/exit_code.h"

namespace muster::cli {
namespace {

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  bool interrupted = false;                    // guarded by mutex
  std::map<int, std::function<void()>> hooks;  // guarded by mutex
  int next_id = 0;                             // guarded by mutex
};

// Never destroyed: the thread that waits for signals lives as long as the process.
State& Shared() {
  static State* state = new State;
  return *state;
}

void OnSignal() {
  State& state = Shared();
  const std::scoped_lock lock(state.mutex);
  if (state.interrupted) ::_exit(kExitInterrupted);
  state.interrupted = true;
  for (const auto& [id, hook] : state.hooks) hook();
  state.changed.notify_all();
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
  State& state = Shared();
  const std::scoped_lock lock(state.mutex);
  return state.interrupted;
}

bool SleepUnlessInterrupted(absl::Duration duration) {
  State& state = Shared();
  std::unique_lock lock(state.mutex);
  state.changed.wait_for(lock, absl::ToChronoNanoseconds(duration),
                         [&] { return state.interrupted; });
  return !state.interrupted;
}

InterruptHook::InterruptHook(std::function<void()> on_interrupt)
    : id_([&] {
        State& state = Shared();
        const std::scoped_lock lock(state.mutex);
        if (state.interrupted) on_interrupt();
        state.hooks[state.next_id] = std::move(on_interrupt);
        return state.next_id++;
      }()) {}

InterruptHook::~InterruptHook() {
  State& state = Shared();
  const std::scoped_lock lock(state.mutex);
  state.hooks.erase(id_);
}

}  // namespace muster::cli
