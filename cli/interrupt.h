// Ctrl-C and SIGTERM for commands that wait: such a command stops its calls and restores the
// terminal.
#ifndef MUSTER_CLI_INTERRUPT_H_
#define MUSTER_CLI_INTERRUPT_H_

#include <functional>

#include "absl/time/time.h"

namespace muster::cli {

// Blocks SIGINT and SIGTERM and records the first of them. A second signal ends the program
// immediately with code 130. Call it once, before other threads exist: they inherit the blocked
// signals.
//
// All functions are thread-safe.
void CatchInterrupts();

// Returns true if a signal was received.
bool Interrupted();

// Waits for `duration`. Returns false as soon as a signal is received.
bool SleepUnlessInterrupted(absl::Duration duration);

// Calls `on_interrupt` once, on another thread, when a signal is received while this object exists.
// If a signal was received before, the constructor calls it. Use it to cancel a blocking call.
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
