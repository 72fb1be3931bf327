// Carries commands down the tree, and keeps them for targets that are away.
//
// At every hop the same: a command waits here for each target that cannot be reached until it can,
// or until its time to begin is over, and goes again to a child that attached anew, which may have
// forgotten it. A node runs a job once, however often it hears of it.
#ifndef MUSTER_SERVICES_RELAY_JOBS_COMMAND_DISPATCHER_H_
#define MUSTER_SERVICES_RELAY_JOBS_COMMAND_DISPATCHER_H_

#include <cstddef>
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

// Thread-safe.
class CommandDispatcher {
 public:
  CommandDispatcher(Topology& tree, const Clock& clock) : tree_(tree), clock_(clock) {}

  // At the centre, before anything else: commands of an earlier life go out only after Release,
  // when it is known whose commands are not to be obeyed any more.
  void Hold();
  void Release();

  // A command for targets below this relay, from the parent or the job board. More targets of a job
  // that is here already are added.
  void Take(v1::JobCommand command);

  // Tells those who may run it, and keeps nothing for those who have not heard of it.
  void Cancel(const v1::JobCancel& cancel);

  // These can be reached now: what waits for them goes out.
  void Came(const std::vector<std::string>& names);

  // What goes up: a target with a final record needs nothing more.
  void Saw(const v1::JobRecords& records);

  // The root has stored these: down to where they came from.
  void Acknowledge(const v1::RecordsAck& ack);

  // Drops what is over. To be called every few seconds.
  void Tick();

  // Commands that wait for somebody, or for an answer.
  size_t open() const;

 private:
  struct Job {
    std::shared_ptr<const v1::SignedCommand> command;
    absl::Duration begin_until;  // monotonic, as the next
    absl::Duration end_until;
    bool cancelled = false;
    std::map<std::string, v1::JobCommand::Target, std::less<>> targets;
  };

  void Send(const std::string& id, const Job& job, const std::vector<std::string>& nodes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Topology& tree_;
  const Clock& clock_;
  mutable Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, Job> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_COMMAND_DISPATCHER_H_
