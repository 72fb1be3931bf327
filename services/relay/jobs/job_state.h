// What is known of a job while it runs: how far each of its targets is, and what has to be said of
// those from whom nothing more will come.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_STATE_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_STATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// Where a node is in the tree, as a job asks for it.
using IsAttached = std::function<bool(std::string_view node)>;

// Decides and remembers; does no I/O. What its methods return has to be put into the job's log, in
// that order; Replay brings a new object to the same state from the log. Not thread-safe.
class JobState {
 public:
  struct Plan {
    v1::Job job;  // as it is shown: id, who, when, what
    std::vector<std::string> targets;
    int32_t parallel = 0;       // 0: no limit
    absl::Time wait_until;      // nodes that are away are waited for until then
    absl::Time begin_until;     // nobody begins later
    absl::Duration time_limit;  // of each
    int64_t max_output = 0;     // bytes that are kept of all nodes
  };

  explicit JobState(Plan plan);

  // Final records of targets that nobody knows; asked once, when the job begins.
  std::vector<v1::JobRecord> Unknown(absl::Time now, const IsAttached& known);

  // Records of nodes in the order in which they came. Repeated ones and those of strangers come to
  // nothing. Output past the limit is replaced by Cut records: one where it begins, then one for
  // each 32 KiB or 192 records, with the sequence of the last record that it stands for.
  std::vector<v1::JobRecord> Take(v1::JobRecord record);
  // The sequence of the last record of a node that the log covers: what the node may forget.
  int64_t Reached(std::string_view node) const;

  // A record of the log, at a restart.
  void Replay(const v1::JobRecord& record);

  // Bytes that the log of a job holds at most.
  static int64_t MaxLogSize(const Plan& plan);

  // Targets to give the command to now, those that are attached, as many as may run at a time; with
  // `parallel` 0 also those that are away: the command waits for them on the way.
  std::vector<std::string> ToGive(const IsAttached& attached);

  // What time has decided since: records that this relay makes itself.
  std::vector<v1::JobRecord> Tick(absl::Time now, const IsAttached& attached);

  // Targets that have not begun, and cannot be reached, are cancelled here; the others have to be
  // told.
  std::vector<v1::JobRecord> Cancel(absl::Time now, const IsAttached& attached);

  // A relay came or went: a record if targets of this job hang below it.
  std::vector<v1::JobRecord> Branch(const std::string& relay, bool lost, absl::Time now,
                                    const std::function<bool(std::string_view node)>& below);

  // Of targets that have no final record.
  std::vector<std::string> Open() const;

  bool ended() const { return open_ == 0; }
  bool cancelled() const { return cancelled_; }
  // With its counts as they are now.
  v1::Job Describe() const;
  void SetCancelled() { cancelled_ = true; }
  void SetEnd(absl::Time end);
  const Plan& plan() const { return plan_; }

 private:
  enum class Stage { kWaiting, kGiven, kStarted, kFinal };
  struct Target {
    Stage stage = Stage::kWaiting;
    bool final_is_ours = false;  // a genuine one still replaces it
    bool cutting = false;        // the log holds a Cut record
    // The node used up its room for records beside output: the log says so by a Cut record without
    // a sequence. Its output is counted and its final record taken, whatever the sequence.
    bool overrun = false;
    int64_t sequence = 0;  // of the last record that was taken
    int64_t stored = 0;    // of the last record that the log covers
    int64_t cut = 0;       // bytes that were left out since
    int64_t room = 0;      // bytes that records beside output took in the log
  };

  v1::JobRecord Ours(std::string_view node, absl::Time now) const;
  v1::JobRecord FinalOf(std::string_view node, v1::JobOutcome outcome, std::string_view detail,
                        absl::Time now) const;
  void Apply(Target& target, const v1::JobRecord& record);
  bool Fits(const v1::JobRecord& record) const;
  void AddCut(std::string_view node, Target& target, const google::protobuf::Timestamp& time,
              std::vector<v1::JobRecord>* taken);
  std::vector<v1::JobRecord> TakeOfOverrun(Target& target, v1::JobRecord record);
  void Move(Target& target, Stage stage);
  void Count(const v1::JobRecord::Final& final, int64_t by);

  Plan plan_;
  std::map<std::string, Target, std::less<>> targets_;
  std::map<v1::JobOutcome, int64_t> outcomes_;
  std::map<std::string, v1::JobRecord::Final, std::less<>> ours_;  // that may be replaced
  size_t open_ = 0;
  size_t busy_ = 0;  // given or started
  int64_t running_ = 0;
  int64_t succeeded_ = 0;
  int64_t kept_ = 0;  // bytes of output
  int64_t cut_ = 0;
  int64_t output_room_ = 0;  // bytes that records with output take in the log
  int64_t branch_room_ = 0;
  bool cancelled_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_STATE_H_
