// Jobs that were cancelled before their command arrived.
#ifndef MUSTER_SERVICES_AGENT_JOBS_CANCELLED_JOBS_H_
#define MUSTER_SERVICES_AGENT_JOBS_CANCELLED_JOBS_H_

#include <cstddef>
#include <deque>
#include <set>
#include <string>

namespace muster {

// The last 1,000 of them: a command that another route delays must not run after its cancel. Not
// thread-safe.
class CancelledJobs {
 public:
  static constexpr size_t kMaxJobs = 1'000;

  void Add(const std::string& job) {
    if (!jobs_.insert(job).second) return;
    order_.push_back(job);
    if (order_.size() <= kMaxJobs) return;
    jobs_.erase(order_.front());
    order_.pop_front();
  }
  bool Contains(const std::string& job) const { return jobs_.contains(job); }

 private:
  std::set<std::string> jobs_;
  std::deque<std::string> order_;  // the oldest first
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_CANCELLED_JOBS_H_
