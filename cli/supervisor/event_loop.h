// Waits for several descriptors and moments on one thread.
#ifndef MUSTER_CLI_SUPERVISOR_EVENT_LOOP_H_
#define MUSTER_CLI_SUPERVISOR_EVENT_LOOP_H_

#include <functional>
#include <map>
#include <memory>

#include "absl/time/time.h"

namespace muster::supervisor {

// Not thread-safe: everything happens on the thread that calls Run, in callbacks.
class EventLoop {
 public:
  using Callback = std::function<void()>;

  // Calls `on_ready` whenever `fd` can be read (or was closed at its other end), until Unwatch. The
  // descriptor stays the caller's, who calls Unwatch before closing it.
  void Watch(int fd, Callback on_ready);
  void Unwatch(int fd);

  // Calls `on_time` once.
  void After(absl::Duration delay, Callback on_time);

  // Until Stop.
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
