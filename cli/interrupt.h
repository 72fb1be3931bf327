// Ctrl-C and SIGTERM for commands that wait: they end by themselves and leave a clean screen.
#ifndef MUSTER_CLI_INTERRUPT_H_
#define MUSTER_CLI_INTERRUPT_H_

#include <functional>

#include "absl/time/time.h"

namespace muster::cli {

// From here on SIGINT and SIGTERM no longer end the program: they are remembered. Call it once,
// before other threads exist (they inherit the blocked signals). A second signal ends the program
// at once with code 130.
//
// All functions are thread-safe.
void CatchInterrupts();

// Whether one came.
bool Interrupted();

// Waits for `duration`, or less if an interrupt comes. False if one came.
bool SleepUnlessInterrupted(absl::Duration duration);

// Calls `on_interrupt` once, on another thread, when an interrupt comes (at once if one came) as
// long as this object lives: what ends a call that blocks.
class InterruptHook {
 public:
  explicit InterruptHook(std::function<void()> on_interrupt);
  ~InterruptHook();
  InterruptHook(const InterruptHook&) = delete;
  InterruptHook& operator=(const InterruptHook&) = delete;

 private:
  const int id_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_INTERRUPT_H_
