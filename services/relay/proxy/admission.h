// Limits on the calls that are forwarded at a time, so that one caller cannot use all of them.
#ifndef MUSTER_SERVICES_RELAY_PROXY_ADMISSION_H_
#define MUSTER_SERVICES_RELAY_PROXY_ADMISSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"

namespace muster {

// Counts the forwarded calls, in all and of each caller. A child relay forwards the calls of all
// its descendant relays in its own name, so it uses up to half of all calls. Thread-safe; outlives
// its tickets.
class Admission {
 public:
  struct Limits {
    int64_t calls = 0;
    int64_t calls_of_one = 0;
    int64_t bytes = 0;  // of the messages of all calls
    int64_t bytes_of_one = 0;
  };

  // A call. It is counted until Release, or until the last copy of its ticket is destroyed.
  struct Entry;
  using Ticket = std::shared_ptr<Entry>;

  explicit Admission(const Limits& limits) : limits_(limits) {}

  // RESOURCE_EXHAUSTED (OVERLOADED), counted.
  absl::StatusOr<Ticket> Enter(const std::string& caller, int64_t bytes, bool is_relay = false);

  // Stops counting a call that has not ended yet. AwaitNone still waits for it.
  static void Release(const Ticket& ticket);

  // Waits until no ticket exists.
  void AwaitNone() ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t calls() const;
  int64_t refused() const;

 private:
  struct Use {
    int64_t calls = 0;
    int64_t bytes = 0;
  };

  void Uncount(Entry& entry) ABSL_LOCKS_EXCLUDED(mutex_);
  void UncountLocked(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(Entry& entry) ABSL_LOCKS_EXCLUDED(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  CondVar none_;
  std::unordered_map<std::string, Use> of_one_ ABSL_GUARDED_BY(mutex_);
  int64_t tickets_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;  // that are counted
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_ADMISSION_H_
