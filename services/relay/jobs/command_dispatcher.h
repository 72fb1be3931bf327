// Sends commands and cancels downstream, and keeps them for targets that are unreachable.
#ifndef MUSTER_SERVICES_RELAY_JOBS_COMMAND_DISPATCHER_H_
#define MUSTER_SERVICES_RELAY_JOBS_COMMAND_DISPATCHER_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/relay/topology/topology.h"

namespace muster {

// Every relay has one, the root relay too. For each target of a job it knows one of four stages:
//
//   waiting     the command has never been sent towards the target. It is sent when the target
//               becomes reachable, until the target's time to wait is over.
//   sent        the command was sent to a child. It is sent again when the target is reachable on
//               a new route or stream, until the time to start has passed: the child may have lost
//               it. A node runs a job once, however often it receives the command.
//   started     the target has reported that the command runs. It is not sent again: another agent
//               with the identity of the node would run it, too.
//   cancelled   the command is not sent any more. A cancel is sent now, and again when the target
//               is reachable again.
//
// A target is removed with its final record, or at the end of the time of its job. The root relay
// decides with Withdraw: the stage that it returns and the end of the waiting are one step.
//
// A relay keeps at most `max_bytes` of commands, because its parent is not trusted. A further one
// is dropped with a line in the log; its targets end at their deadline.
//
// Thread-safe. A lock of the topology may be taken under the lock of this object, not the reverse.
class CommandDispatcher {
 public:
  // The limit of a relay that is not the root relay: hundreds of jobs, each for all nodes of a
  // large branch.
  static constexpr size_t kMaxBytesOfBranch = size_t{128} << 20;

  CommandDispatcher(Topology& topology, const Clock& clock,
                    size_t max_bytes = std::numeric_limits<size_t>::max())
      : topology_(topology), clock_(clock), max_bytes_(max_bytes) {}

  // Sends no command before Release: the root relay starts commands of an earlier process only when
  // it knows which signers are revoked. Cancels are sent immediately.
  void Hold();
  void Release();

  // Adds targets to a job and sends the command to those that are reachable. With
  // `may_have_been_sent` an earlier process may have sent it already.
  void Dispatch(v1::JobCommand command, bool may_have_been_sent = false);

  // Cancels the job on these nodes; on all of its targets here if it names none. The cancel of
  // another node is sent once.
  void Cancel(const v1::JobCancel& cancel);

  // Ends the waiting of these targets: the command is not sent to them from here any more. Returns
  // those that the command was never sent to. The others are cancelled downstream, also if this
  // object does not know them; the cancel is kept for `keep`.
  std::vector<std::string> Withdraw(const std::string& job, const std::vector<std::string>& nodes,
                                    absl::Duration keep);

  // Returns whether the command was sent towards the node, or may have been.
  bool WasSent(const std::string& job, const std::string& node) const;

  // Sends what is kept for these nodes. Called when they become reachable, or by another route.
  void OnReachable(const std::vector<std::string>& names);

  // Notes the targets that have started the command, and removes those of final records.
  void HandleRecords(const v1::JobRecords& records);
  // The target has started the command.
  void MarkStarted(const std::string& job, const std::string& node);
  // Removes a target: it has a final record.
  void Finish(const std::string& job, const std::string& node);

  // Sends acks to the children that the records came from.
  void SendAcks(const v1::RecordsAck& acks);

  // Removes jobs past their time. Call it every few seconds.
  void Tick();

  // The number of jobs with targets here.
  size_t open() const;

 private:
  enum class Stage { kWaiting, kSent, kStarted, kCancelled };
  struct Target {
    v1::JobCommand::Target target;
    Stage stage = Stage::kWaiting;
    absl::Duration wait_until;  // monotonic
  };
  struct Job {
    std::shared_ptr<const v1::SignedCommand> command;  // null: only cancels are known
    absl::Duration begin_until;                        // monotonic, as the next
    absl::Duration end_until;
    std::map<std::string, Target, std::less<>> targets;
    size_t bytes = 0;  // of the commands with their targets
  };
  using Jobs = absl::flat_hash_map<std::string, Job>;
  using Messages = std::map<std::shared_ptr<ChildLink>, std::vector<Target*>>;

  // Sends what the stage of each node asks for.
  void Send(const std::string& id, Job& job, const std::vector<std::string>& nodes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MaySend(const Job& job, const Target& target, absl::Duration now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendCommand(const std::string& id, const Job& job, ChildLink& link,
                   const std::vector<Target*>& targets) const;
  static void SendCancel(const std::string& id, ChildLink& link,
                         const std::vector<Target*>& targets);

  // Returns what is counted for a target of the job; 0 if the node is none.
  static size_t CountedBytes(const Job& job, const std::string& node);
  // Counts a command. Returns false if it is to be dropped.
  bool Reserve(const v1::JobCommand& command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(Jobs::iterator job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Topology& topology_;
  const Clock& clock_;
  const size_t max_bytes_;
  mutable Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  Jobs jobs_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all jobs
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_COMMAND_DISPATCHER_H_
