// When tasks that failed are tried again.
#ifndef MUSTER_SERVICES_RELAY_FILES_RETRY_SCHEDULE_H_
#define MUSTER_SERVICES_RELAY_FILES_RETRY_SCHEDULE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace muster {

// Hands a task to an executor; false if it does not accept it.
using PostTask = std::function<bool(absl::AnyInvocable<void()>)>;

// Named tasks with back-off: a task runs at most once at a time, and not before its back-off ends.
// Thread-safe; nothing waits.
class RetrySchedule {
 public:
  RetrySchedule(const Clock& clock, const BackoffOptions& times) : clock_(clock), times_(times) {}

  // Posts `work` unless the task is in progress or its back-off has not ended; false then. `work`
  // ends with Finish or Forget.
  bool Start(const std::string& task, const PostTask& post, absl::AnyInvocable<void()> work);

  // Ends an attempt: the next one starts after the back-off, which is not shorter than `least` nor
  // than the delay that `status` asks for.
  void Finish(const std::string& task, const absl::Status& status,
              absl::Duration least = absl::ZeroDuration());

  // Ends the task.
  void Forget(const std::string& task);

  // Counts an attempt that failed with `status`. Returns whether another attempt cannot succeed:
  // the file was refused, or its bytes did not match their signature three times.
  bool CannotSucceed(const std::string& task, const absl::Status& status);

  // Ends the back-off of all tasks.
  void ResetBackoff();

  // Forgets the tasks that are not in progress and not `wanted`.
  void Retain(absl::FunctionRef<bool(const std::string& task)> wanted);

  size_t in_progress() const;

 private:
  struct Task {
    absl::Duration next = absl::ZeroDuration();  // monotonic
    std::unique_ptr<Backoff> backoff;            // null before the end of the first attempt
    int mismatches = 0;
    bool in_progress = false;
  };

  const Clock& clock_;
  const BackoffOptions times_;
  mutable Mutex mutex_;
  std::map<std::string, Task> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_RETRY_SCHEDULE_H_
