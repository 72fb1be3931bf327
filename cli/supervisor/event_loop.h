// An event loop for descriptors and timers.
#ifndef MUSTER_CLI_SUPERVISOR_EVENT_LOOP_H_
#define MUSTER_CLI_SUPERVISOR_EVENT_LOOP_H_

#include <functional>
#include <map>
#include <memory>

#include "absl/time/time.h"

namespace muster::supervisor {

// Not thread-safe: the thread that calls Run calls all callbacks.
class EventLoop {
 public:
  using Callback = std::function<void()>;

  // Calls `on_ready` whenever `fd` is readable or its other end is closed, until Unwatch. The
  // caller keeps the descriptor and calls Unwatch before it closes it.
  void Watch(int fd, Callback on_ready);
  void Unwatch(int fd);

  // Calls `on_time` once after `delay`.
  void After(absl::Duration delay, Callback on_time);

  // Runs until Stop.
  void Run();
  void Stop() { stopped_ = true; }

 private:
  int MillisecondsToWait() const;
  void RunTimers();

  bool stopped_ = false;
  std::map<int, std::shared_ptr<Callback>> watched_;
  std::multimap<absl::Duration, Callback> timers_;  // by monotonic time
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_EVENT_LOOP_H_
