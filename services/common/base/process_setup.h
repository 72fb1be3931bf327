// The first steps of each program, and its stop signals.
#ifndef MUSTER_SERVICES_COMMON_BASE_PROCESS_SETUP_H_
#define MUSTER_SERVICES_COMMON_BASE_PROCESS_SETUP_H_

#include "absl/status/status.h"
#include "services/common/base/unique_fd.h"

namespace muster {

// Ignores SIGPIPE: a lost peer is an error of one write, not the end of the process. Disables core
// dumps and ptrace by others, because memory holds keys, and sets umask 077. Disables Abseil's
// mutex deadlock detection, which costs heartbeats 16 %. Call it at the beginning of main.
absl::Status SetUpProcess();

// Waits for SIGTERM or SIGINT. Make it in main before any other thread starts: it blocks both
// signals, and threads inherit that. One at a time per process.
//
// After the first signal both have their default effect again: a second one ends a process that
// does not get on with its stop.
class SignalWaiter {
 public:
  SignalWaiter();
  ~SignalWaiter();

  // Blocks until a signal came, and returns its number; 0 after RequestStop. Later calls return at
  // once with the same.
  int Wait();

  // Ends Wait from any thread, when the program itself has a reason to stop.
  void RequestStop();

 private:
  UniqueFd signals_;
  UniqueFd stop_;
  int received_ = -1;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_PROCESS_SETUP_H_
