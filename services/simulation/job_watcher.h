// A client of a simulated world that follows a job.
#ifndef MUSTER_SERVICES_SIMULATION_JOB_WATCHER_H_
#define MUSTER_SERVICES_SIMULATION_JOB_WATCHER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/relay/jobs/watch_source.h"
#include "services/simulation/job_relay.h"
#include "services/simulation/network.h"

namespace muster::testing {

// Follows a job as `muster job logs -f` does: it connects again after each loss, and resumes after
// the last response that it has received. Not thread-safe.
class JobWatcher {
 public:
  JobWatcher(Network& network, RootRelay& root, std::string job)
      : network_(network), root_(root), job_(std::move(job)) {}

  // Connects if there is no stream, and sends what the root relay has. To be called often.
  void Follow();
  // Removes the root relay's end of the stream, because its process ends.
  void DropSource() { stream_.reset(); }

  // Returns whether the client has received the end of the job.
  bool ended() const { return ended_; }

  // Checks that each of the targets has one outcome: at most one that the root relay made, then at
  // most one of the node, and nothing after that. At the end of the job each of them has one.
  absl::Status CheckOutcomes(const std::vector<std::string>& targets) const;
  // Checks that the client has received the first of these records, which are stored.
  absl::Status CheckStored(const std::vector<std::string>& stored) const;

 private:
  struct Stream {
    std::shared_ptr<Connection> connection;
    std::unique_ptr<JobWatchSource> source;  // null until the request has arrived
  };

  void Connect();
  void Open(const std::shared_ptr<Stream>& stream);
  void Apply(const v1::WatchJobResponse& response);
  absl::Status CheckTarget(const std::string& node) const;

  Network& network_;
  RootRelay& root_;
  const std::string job_;
  std::shared_ptr<Stream> stream_;
  std::vector<v1::JobRecord> records_;  // that were received
  int64_t position_ = 0;                // of the next one
  v1::Job state_;
  bool ended_ = false;
  absl::Status refused_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_JOB_WATCHER_H_
