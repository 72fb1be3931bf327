// The threads that the parts of a service share.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_SERVICE_THREADS_H_
#define MUSTER_SERVICES_COMMON_SERVICE_SERVICE_THREADS_H_

#include <cstddef>
#include <memory>

#include "absl/time/time.h"
#include "services/common/base/executor.h"
#include "services/common/base/timers.h"

namespace muster {

// The one TimerService of a process and its common executors. The main object of a service owns it
// as its first member, so that it is destroyed last. Thread-safe.
class ServiceThreads {
 public:
  // `request_threads` threads for requests(), with at most `max_queue` waiting tasks.
  ServiceThreads(size_t request_threads, size_t max_queue);

  // Refuses the timers of streams (Schedule) past kMaxStreamTimers, and never those of the service
  // itself (ScheduleAlways).
  TimerService& timers() { return *timers_; }

  // The handlers of calls. They may wait for the disk. Those of one caller take at most half of the
  // threads.
  Executor& requests() { return requests_; }

  // Periodic work and the streams that the service follows (ScheduledTask, StreamFollower). Some
  // may block: the renewal of the certificate, and the name resolution of two channels
  // (ServiceChannel). At a relay the sweep of the spool and the list of nodes wait for the disk.
  // One thread is always free.
  Executor& background() { return background_; }

  // Waits until the accepted tasks of both executors have run, for at most `limit` each, and stops
  // the timers.
  void Stop(absl::Duration limit);

 private:
  Executor requests_;
  Executor background_;
  const std::unique_ptr<TimerService> timers_;  // after the executors that its callbacks use
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_SERVICE_THREADS_H_
