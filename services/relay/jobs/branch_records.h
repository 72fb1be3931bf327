// The records of a job about targets that became unreachable, or reachable again.
#ifndef MUSTER_SERVICES_RELAY_JOBS_BRANCH_RECORDS_H_
#define MUSTER_SERVICES_RELAY_JOBS_BRANCH_RECORDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/relay/jobs/target_routes.h"

namespace muster {

// Makes no more records of a job when they have reached kMaxBytes, of which relays have at most
// half. Records the loss of one node at most kMaxLosses times. Not thread-safe.
class BranchRecords {
 public:
  static constexpr int64_t kMaxBytes = int64_t{1} << 20;
  static constexpr int kMaxLosses = 20;

  explicit BranchRecords(std::string job) : job_(std::move(job)) {}

  // Counts a record of the log, after a restart.
  void Replay(const v1::JobRecord& record);
  // After a restart, the nodes need some time to attach before they are lost.
  void SetResumed() { resumed_ = true; }

  // Returns a record for each of these relays, which were attached (true) or lost, that has open
  // targets: `waiting` has their number by relay.
  std::vector<v1::JobRecord> OfRelays(const std::map<std::string, bool>& relays,
                                      const std::map<std::string, int64_t>& waiting,
                                      absl::Time now);

  struct Running {
    std::string node;
    absl::Time end;  // when it is ended at the latest
  };
  // Returns a record if targets that run the command have become unreachable, and one if such
  // targets are reachable again.
  std::vector<v1::JobRecord> OfNodes(const std::vector<Running>& running, absl::Time now,
                                     const TargetRoutes& routes);

 private:
  // Appends a record, unless there is no more space.
  void Add(v1::JobRecord::Branch branch, absl::Time now, std::vector<v1::JobRecord>& records);

  const std::string job_;
  bool resumed_ = false;
  absl::Time first_look_ = absl::InfiniteFuture();  // of this process at the nodes
  std::set<std::string, std::less<>> lost_;         // nodes whose loss has a record
  std::map<std::string, int, std::less<>> losses_;  // of each node, in this process
  int64_t relay_bytes_ = 0;
  int64_t node_bytes_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_BRANCH_RECORDS_H_
