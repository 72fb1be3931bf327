// The jobs of a node that wait for their turn.
#ifndef MUSTER_SERVICES_AGENT_JOBS_WAITING_JOBS_H_
#define MUSTER_SERVICES_AGENT_JOBS_WAITING_JOBS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "services/common/base/due_queue.h"

namespace muster {

// First come, first served, each until its deadline. Times are of Clock::MonotonicNow. Not
// thread-safe.
class WaitingJobs {
 public:
  void Add(const std::string& job, absl::Duration begin_by) {
    order_.push_back(job);
    due_.Set(job, begin_by);
  }

  // Returns whether the job waited.
  bool Remove(const std::string& job) {
    std::erase(order_, job);
    return due_.Remove(job);
  }

  // Removes and returns a job whose deadline is not after `now`.
  std::optional<std::string> PopExpired(absl::Duration now) {
    auto job = due_.PopDue(now);
    if (job) std::erase(order_, *job);
    return job;
  }

  // Removes and returns the first job.
  std::optional<std::string> PopNext() {
    if (order_.empty()) return std::nullopt;
    std::string job = std::move(order_.front());
    order_.pop_front();
    due_.Remove(job);
    return job;
  }

  // Returns the earliest deadline.
  std::optional<absl::Duration> NextDue() const { return due_.NextDue(); }
  size_t size() const { return order_.size(); }

 private:
  std::deque<std::string> order_;
  DueQueue<std::string> due_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_WAITING_JOBS_H_
