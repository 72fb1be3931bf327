// The jobs of a fleet in one process: root relay, branch and nodes on simulated disks, clocks and
// network.
#ifndef MUSTER_SERVICES_SIMULATION_JOB_WORLD_H_
#define MUSTER_SERVICES_SIMULATION_JOB_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/simulation/job_node.h"
#include "services/simulation/job_relay.h"
#include "services/simulation/job_watcher.h"
#include "services/simulation/network.h"

namespace muster::testing {

// Operators submit and cancel jobs. Meanwhile processes are killed, power is lost, disks fail,
// connections are reset and machines are separated, in an order that follows the seed. Equal seeds
// can diverge after many crashes, so a seed that fails may need several attempts. Not thread-safe.
//
// The checks: an accepted job is kept, and so are its stored records. An operator that follows it
// receives each of them once, and one outcome of each target. The output of each node is in order
// and once. A command runs at most once. It does not run after its time, or where its outcome is
// that it did not start.
class JobWorld {
 public:
  // `crashes`: how many processes end before the last phase.
  JobWorld(uint64_t seed, int crashes);
  ~JobWorld();

  // Returns the first broken promise.
  absl::Status Run();

  int crashes() const { return crashes_; }
  // A line for each fault and each step of an operator.
  const std::string& log() const { return log_; }

 private:
  struct JobHistory {
    bool accepted = false;  // the operator knows it
    absl::Duration submitted;
    std::vector<std::string> nodes;
    std::vector<std::string> records;     // that were stored at the last check
    std::unique_ptr<JobWatcher> watcher;  // of the operator that knows the job
    // Records of nodes by which the command did not start.
    std::map<std::string, std::string> never_ran;
  };

  void Advance();
  void RunUntil(const std::function<bool()>& condition);
  void Every(absl::Duration period, const std::function<void()>& work);

  void SubmitJob();
  void CancelJob();
  void FollowJobs();
  void DropWatchers();
  // Reads the durable records of all jobs, and compares them with the history.
  absl::Status CheckJobs();
  absl::Status CheckJob(const std::string& id, JobHistory& job);
  absl::Status CheckNode(const std::string& id, JobHistory& job, const std::string& node,
                         const std::vector<v1::JobRecord>& records);

  void Disturb();
  void ScheduleFaults(SimulatedDisk& disk, bool& faulty);
  void StartRoot();
  void EndRoot();
  void StartNode(JobNode& node);
  void EndNode(JobNode& node);
  void EndProcess(SimulatedDisk& disk, const std::string& name);
  void RestartBranch();

  absl::Status Settle();
  bool IsSettled();

  JobRelay& ParentOf(const JobNode& node);
  void Break(const absl::Status& broken);
  uint64_t Chance(uint64_t below) { return chance_() % below; }
  bool OneIn(uint64_t n) { return Chance(n) == 0; }
  absl::Duration Soon(int milliseconds) { return absl::Milliseconds(1 + Chance(milliseconds)); }
  void Log(std::string_view what, const absl::Status& outcome = absl::OkStatus());

  const int wanted_crashes_;
  std::mt19937_64 chance_;
  Network network_;
  RootRelay root_;
  BranchRelay branch_;
  JobNode::Executions executions_;
  std::vector<std::unique_ptr<JobNode>> nodes_;
  std::map<std::string, JobHistory> jobs_;
  int submitted_ = 0;
  int crashes_ = 0;
  bool calm_ = false;  // the last phase
  absl::Status broken_;
  std::string log_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_JOB_WORLD_H_
