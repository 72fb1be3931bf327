// A node of a simulated world that runs commands.
#ifndef MUSTER_SERVICES_SIMULATION_JOB_NODE_H_
#define MUSTER_SERVICES_SIMULATION_JOB_NODE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/cancelled_jobs.h"
#include "services/agent/jobs/finished_jobs.h"
#include "services/agent/jobs/job_folder.h"
#include "services/agent/jobs/record_sender.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/simulation/job_relay.h"
#include "services/simulation/network.h"

namespace muster::testing {

// The effects of the command of a job on a node, whatever the node remembers of it.
struct Execution {
  int starts = 0;
  absl::Duration started;  // world time
  std::string output;      // until its end, or the end of its process
  bool exited = false;
};

// The files and the messages are those of JobRunner; the commands are simulated: they write some
// lines, and exit. Not thread-safe.
class JobNode {
 public:
  using Executions = std::map<std::pair<std::string, std::string>, Execution>;  // by job and node

  JobNode(uint64_t seed, std::string name, Network& network, Executions& executions);
  ~JobNode() { Stop(); }

  SimulatedDisk disk;
  FakeClock clock;
  bool faulty = false;  // the disk may fail in this life

  const std::string& name() const { return name_; }
  bool running() const { return sender_ != nullptr; }
  absl::Status Start();
  void Stop();
  // Attaches, continues the commands, and sends what is due. To be called often.
  void Tick(JobRelay& parent);
  // Returns the number of jobs whose records are not all stored at the root relay.
  size_t busy() const { return jobs_.size(); }

 private:
  struct Job {
    std::unique_ptr<NodeJobFolder> folder;
    absl::Duration begin_by;
    int lines = 0;  // that the command still writes
    bool started = false;
    bool stored_start = false;
    bool cancelled = false;
    bool ended = false;
    std::optional<v1::JobRecord> final;  // not stored yet
  };

  void HandleMessage(const v1::AttachResponse& message);
  void Receive(const v1::JobCommand& command);
  bool IsKnown(const std::string& job);
  void Cancel(const v1::JobCancel& cancel);
  void EndWithoutRecords(const std::string& job, v1::JobRecord final);
  void Run(const std::string& id, Job& job);
  void Begin(const std::string& id, Job& job);
  void End(Job& job, v1::JobRecord final);
  void RemoveReported();
  void SendRecords();
  uint64_t Chance(uint64_t below) { return chance_() % below; }

  const std::string name_;
  Network& network_;
  Executions& executions_;
  std::mt19937_64 chance_;
  AttachedChild upstream_;

  // The process of one life.
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<RecordSender> sender_;
  std::unique_ptr<CancelledJobs> cancelled_;
  std::unique_ptr<FinishedJobs> finished_;
  std::map<std::string, Job> jobs_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_JOB_NODE_H_
