// How much may be on its way up at a time, so that nobody below can take all of it.
#ifndef MUSTER_SERVICES_RELAY_PROXY_ADMISSION_H_
#define MUSTER_SERVICES_RELAY_PROXY_ADMISSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"

namespace muster {

// Counts what is under way, of everybody and of each caller. Thread-safe; outlives its tickets.
class Admission {
 public:
  struct Limits {
    int64_t calls = 0;
    int64_t calls_of_one = 0;
    int64_t bytes = 0;  // of their messages
  };

  // Ends what it was given for with its last copy.
  using Ticket = std::shared_ptr<void>;

  explicit Admission(const Limits& limits) : limits_(limits) {}

  // RESOURCE_EXHAUSTED (OVERLOADED), counted.
  absl::StatusOr<Ticket> Enter(const std::string& caller, int64_t bytes);

  int64_t calls() const;
  int64_t refused() const;

 private:
  void Leave(const std::string& caller, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, int64_t> of_one_ ABSL_GUARDED_BY(mutex_);
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_ADMISSION_H_
