// Records and routes for tests of the state of a job.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_STATE_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_STATE_FIXTURE_H_

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/relay/jobs/job_state.h"

namespace muster {

inline const absl::Time kNow = absl::FromUnixSeconds(1'750'000'000);

// Returns the moment that many seconds after kNow.
inline Instant At(int seconds) {
  return {kNow + absl::Seconds(seconds), absl::Seconds(1'000 + seconds)};
}

inline v1::JobRecord Record(const std::string& node, int64_t sequence) {
  v1::JobRecord record;
  record.set_job("j");
  record.set_node(node);
  record.set_sequence(sequence);
  return record;
}

inline v1::JobRecord Started(const std::string& node, int64_t sequence = 1) {
  v1::JobRecord record = Record(node, sequence);
  record.mutable_started();
  return record;
}

inline v1::JobRecord Output(const std::string& node, int64_t sequence, const std::string& data) {
  v1::JobRecord record = Record(node, sequence);
  record.mutable_output()->set_data(data);
  return record;
}

inline v1::JobRecord Exited(const std::string& node, int64_t sequence, int code = 0) {
  v1::JobRecord record = Record(node, sequence);
  record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
  record.mutable_final()->set_exit_code(code);
  return record;
}

// Nodes that are attached, or were until kNow; the command is sent to those that were attached
// once.
class FakeRoutes : public TargetRoutes {
 public:
  FakeRoutes& operator=(const std::set<std::string>& attached) {
    attached_ = attached;
    sent_.insert(attached.begin(), attached.end());
    return *this;
  }
  void clear() { attached_.clear(); }

  Attachment Find(const std::string& node) const override {
    return {attached_.contains(node), since};
  }
  bool WasSent(const std::string& node) const override { return sent_.contains(node); }
  std::vector<std::string> Withdraw(const std::vector<std::string>& nodes) override {
    std::vector<std::string> never_sent;
    for (const std::string& node : nodes) {
      if (!sent_.contains(node)) never_sent.push_back(node);
      withdrawn.insert(node);
    }
    return never_sent;
  }

  absl::Time since = kNow;  // the last change of each
  std::set<std::string> withdrawn;

 private:
  std::set<std::string> attached_;
  std::set<std::string> sent_;
};

class JobStateTest : public ::testing::Test {
 protected:
  static JobState Make(int32_t parallel = 0, int64_t max_output = 1'000) {
    JobState::Plan plan;
    plan.job.set_job("j");
    plan.targets = {"n1", "n2", "n3"};
    plan.parallel = parallel;
    plan.wait = absl::Seconds(10);
    plan.wait_until = kNow + plan.wait;
    plan.begin_until = kNow + absl::Seconds(60);
    plan.time_limit = absl::Seconds(60);
    plan.max_output = max_output;
    return JobState(std::move(plan));
  }
  JobStateTest() { routes_ = {"n1", "n2", "n3"}; }

  static int64_t Count(const JobState& job, v1::JobOutcome outcome) {
    const v1::Job described = job.Describe();
    for (const auto& entry : described.outcomes()) {
      if (entry.outcome() == outcome) return entry.count();
    }
    return 0;
  }

  FakeRoutes routes_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_STATE_FIXTURE_H_
