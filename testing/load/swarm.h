// The state that all simulated nodes share.
#ifndef MUSTER_TESTING_LOAD_SWARM_H_
#define MUSTER_TESTING_LOAD_SWARM_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/identity/certificate.h"

namespace muster::load {

// Writes an event as a line of JSON to standard output.
void PrintEvent(const nlohmann::json& event);

// Counts the connections of the nodes, and prints when all are connected, and the first loss and
// the first failure after that. Thread-safe.
class Swarm {
 public:
  Swarm(int nodes, Certificate command_ca);

  // Runs `run` on the timer thread.
  void RunAfter(absl::Duration delay, absl::AnyInvocable<void()> run);

  void CountAttempt();
  void OnConnected();
  void OnLost(const grpc::Status& status);
  // Counts an attempt without a welcome; `silent` if the relay did not answer. A refused connection
  // while a relay is down does not count as a failure.
  void OnFailed(const grpc::Status& status, bool silent);

  const Certificate& command_ca() const { return command_ca_; }

 private:
  const int nodes_;
  const Certificate command_ca_;
  const std::unique_ptr<TimerService> timers_;
  Mutex mutex_;
  int connected_ ABSL_GUARDED_BY(mutex_) = 0;
  // The time of the beginning, or of the first loss.
  absl::Time since_ ABSL_GUARDED_BY(mutex_) = absl::Now();
  // Since the last event "all connected".
  int64_t attempts_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t timed_out_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t other_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::load

#endif  // MUSTER_TESTING_LOAD_SWARM_H_
