// The state of a running job: the stage of each target, and the final records of targets that will
// not send any more records.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_STATE_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_STATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/jobs/records_signature.h"
#include "services/relay/jobs/branch_records.h"
#include "services/relay/jobs/run_deadline.h"
#include "services/relay/jobs/target_routes.h"

namespace muster {

// Returns why no command can be sent to a target; empty for a node that is or was in the topology.
using ExplainUnknown = std::function<std::string(std::string_view node)>;

// Does no I/O. The caller writes the records that its methods return into the job's log, in that
// order; Replay brings a new object to the same state from the log. Not thread-safe.
class JobState {
 public:
  struct Plan {
    v1::Job job;  // as it was submitted
    std::vector<std::string> targets;
    int32_t parallel = 0;       // 0: no limit
    absl::Duration wait;        // how long an unreachable target is waited for
    absl::Time wait_until;      // the end of that time for the first targets
    absl::Time begin_until;     // no target starts later
    absl::Duration time_limit;  // of each
    int64_t max_output = 0;     // bytes that are stored of all nodes
  };

  explicit JobState(Plan plan);

  // Returns final records of targets that are no known nodes. Call it once, for a new job.
  std::vector<v1::JobRecord> EndUnknown(absl::Time now, const ExplainUnknown& explain);

  // Handles the records of nodes in the order of arrival. Returns nothing for repeated records and
  // for nodes that are no targets. A final record must be the node's own (VerifyFinal); it states
  // whether the records before it are the signed ones. Replaces output past the limit by Cut
  // records: one where it begins, then one for each 32 KiB or 192 records, with the sequence of the
  // last record that it stands for.
  std::vector<v1::JobRecord> Receive(v1::JobRecord record);
  // Returns the sequence of the last record of a node that the log covers: the node may delete the
  // records up to it.
  int64_t Reached(std::string_view node) const;

  // Applies a record of the log, after a restart.
  void Replay(const v1::JobRecord& record);
  // Call it after the last Replay: an earlier process may have sent the command to any target.
  void SetResumed() {
    resumed_ = true;
    branches_.SetResumed();
  }
  bool resumed() const { return resumed_; }

  // Returns the maximum size of the log of a job, in bytes.
  static int64_t MaxLogSize(const Plan& plan);

  // Returns the targets whose turn it is now. With a limit of `parallel` only attached ones.
  // Otherwise all: the dispatcher waits for those that are unreachable.
  std::vector<std::string> Release(absl::Time now, const TargetRoutes& routes);

  // Ends targets that will not send any more records, and returns their final records.
  std::vector<v1::JobRecord> Tick(const Instant& now, TargetRoutes& routes);

  // Returns a record if targets that run the command have become unreachable, and one if such
  // targets are reachable again.
  std::vector<v1::JobRecord> ReportLost(const Instant& now, const TargetRoutes& routes);

  // Cancels the job. Returns final records of the targets that the command was never sent to; the
  // others send their own, or are ended by Tick.
  std::vector<v1::JobRecord> Cancel(absl::Time now, TargetRoutes& routes);

  // Returns a record for each of these relays, which were attached (true) or lost, that has open
  // targets of this job. Calls `relay_of`, which returns the parent of a node, once for each open
  // target.
  using RelayOf = std::function<std::string(std::string_view node)>;
  std::vector<v1::JobRecord> RelaysChanged(const std::map<std::string, bool>& relays,
                                           absl::Time now, const RelayOf& relay_of);

  // Returns whether `node` is a target without a final record.
  bool IsOpen(std::string_view node) const {
    const auto target = targets_.find(node);
    return target != targets_.end() && target->second.stage != Stage::kFinal;
  }
  // Returns the targets without a final record.
  std::vector<std::string> Open() const;
  // Returns the targets that the root relay ended although the command may be on them.
  std::vector<std::string> Abandoned() const;
  bool has_abandoned() const { return std::ranges::any_of(ours_, &JobState::IsAbandoned); }

  bool ended() const { return open_ == 0; }
  bool cancelled() const { return cancelled_; }
  // Returns the job with its current counts, and the time at which its open targets are ended.
  v1::Job Describe() const;
  void SetCancelled() { cancelled_ = true; }
  void SetEnd(absl::Time end);
  void SetLate(absl::Time time);
  const Plan& plan() const { return plan_; }

 private:
  enum class Stage { kWaiting, kReleased, kStarted, kFinal };
  struct Target {
    Stage stage = Stage::kWaiting;
    bool final_is_ours = false;  // a record of the node replaces it
    bool cutting = false;        // the log has a Cut record
    // The records of the node beside output exceed their limit. The log has a Cut record without a
    // sequence for this. From then on, output is only counted, and a final record is accepted with
    // any sequence.
    bool overrun = false;

    int64_t sequence = 0;  // of the last accepted record
    int64_t stored = 0;    // of the last record that the log covers

    int64_t cut = 0;   // bytes that were omitted since
    int64_t room = 0;  // bytes of records beside output in the log

    RecordsDigest digest;   // of the records up to `sequence`
    bool has_gap = false;   // `digest` lacks records
    absl::Time wait_until;  // how long it is waited for if it is unreachable
    RunDeadline deadline;   // of a started one
  };

  using Decided = std::map<std::string, v1::JobRecord::Final, std::less<>>;
  static bool IsAbandoned(const Decided::value_type& ended) {
    return ended.second.outcome() == v1::JOB_OUTCOME_TIMED_OUT ||
           ended.second.outcome() == v1::JOB_OUTCOME_INDETERMINATE;
  }

  bool IsAway(const std::string& node, absl::Time now, const TargetRoutes& routes) const;
  absl::Time LatestEnd(const Target& target, const Instant& now) const;
  bool IsOver(const std::string& node, const Target& target, const Instant& now,
              const TargetRoutes& routes) const;
  v1::JobRecord EndOf(const std::string& node, const Target& target, bool never_sent,
                      absl::Time now, const TargetRoutes& routes) const;
  std::set<std::string> Withdraw(const std::vector<std::string>& nodes, TargetRoutes& routes) const;
  v1::JobRecord MakeRecord(std::string_view node, absl::Time now) const;
  v1::JobRecord FinalOf(std::string_view node, v1::JobOutcome outcome, std::string_view detail,
                        absl::Time now) const;
  void Apply(Target& target, const v1::JobRecord& record);
  static void ReplayDigest(Target& target, const v1::JobRecord& record);
  static void SetSequence(Target& target, v1::JobRecord* record);
  bool Fits(const v1::JobRecord& record) const;
  void AddCut(std::string_view node, Target& target, const google::protobuf::Timestamp& time,
              std::vector<v1::JobRecord>* accepted);
  std::vector<v1::JobRecord> ReceiveOverrun(Target& target, v1::JobRecord record);
  void Move(Target& target, Stage stage);
  void Count(const v1::JobRecord::Final& final, int64_t by);

  Plan plan_;
  std::map<std::string, Target, std::less<>> targets_;
  std::map<v1::JobOutcome, int64_t> outcomes_;
  Decided ours_;  // replaceable
  size_t open_ = 0;
  size_t busy_ = 0;  // released or started
  int64_t running_ = 0;
  int64_t succeeded_ = 0;
  int64_t kept_ = 0;  // bytes of output
  int64_t cut_ = 0;
  int64_t output_room_ = 0;  // bytes of records with output in the log
  BranchRecords branches_;
  bool cancelled_ = false;
  bool resumed_ = false;
  std::optional<absl::Time> attach_until_;  // after a restart: until then, no node is lost
  absl::Time latest_end_;                   // of the open targets, at the last Tick
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_STATE_H_
