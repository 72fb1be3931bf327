// Collects for runs on an attached node, as `muster agent` does for one result.
#ifndef MUSTER_SERVICES_AGENT_COLLECTION_COLLECTION_RUNNER_H_
#define MUSTER_SERVICES_AGENT_COLLECTION_COLLECTION_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "services/agent/attach/collections.h"
#include "services/agent/jobs/node_policy.h"
#include "services/client/client.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"

namespace muster {

struct CollectionOptions {
  // The node's folder: policy.yaml, and collections/ for state that survives restarts.
  std::string folder;
  std::string node;
  // key.pem, cert.pem and ca.pem of the node, replaced atomically at a renewal.
  std::string identity_folder;
  // Other relays for deliveries if the relay of the offer is unreachable.
  std::vector<std::string> relay_targets;
  size_t max_parallel = 4;
  // Offered plugins, and the bytes of their definitions. More are dropped, and offered again.
  size_t max_waiting = 1'000;
  size_t max_waiting_bytes = size_t{16} << 20;
  // Finished collections of which a repeated offer is ignored until the next attachment. Beyond it,
  // the state on the disk shows what is committed.
  size_t max_finished = 10'000;
  // Undelivered results that are removed an hour after the end of their runs. Others remain.
  size_t max_undelivered = 10'000;
  // For the removal. They outlive the runner.
  const Clock* clock = nullptr;
  TimerService* timers = nullptr;
  Executor* executor = nullptr;
  // For tests: called without a lock when the work for a plugin has ended and its task is present.
  std::function<void(const std::string& plugin)> on_worked;
};

// Runs plugins in the order of their offers. A plugin that the policy does not admit, or that this
// node cannot run, gets an error result. Plugins and deliveries block, so each of `max_parallel`
// has a thread. The state of a collection stays until its run ends, because a repeated offer must
// not run the plugin again. A result that is not delivered stays longer: only a relay says that the
// run has ended. Another offer continues its delivery. Thread-safe.
class CollectionRunner final : public Collections {
 public:
  // An undelivered result stays for so long after its run has ended.
  static constexpr absl::Duration kUndeliveredKept = absl::Hours(1);

  // Kills the plugins that an earlier process of this agent left running.
  explicit CollectionRunner(CollectionOptions options);
  // Calls Stop.
  ~CollectionRunner() override;

  void Offer(const v1::CollectionOffer& offer, const std::string& relay_target) override;
  void OnAttached() override;
  void End(const v1::CollectionEnded& ended) override;

  // Stops running plugins; deliveries that have begun continue for up to a minute. Blocks.
  void Stop();

 private:
  struct Key {
    std::string run;
    std::string plugin;
    auto operator<=>(const Key&) const = default;
  };

  struct Task {
    Key key;
    std::string definition_yaml;
    absl::Time deadline;
    uint64_t offered = 0;  // the attachment of the newest offer; guarded by mutex_
    std::stop_source stop;
  };

  // Drops the tasks of `run` that have not started; without `run`, those of all runs.
  void DropWaiting(const std::optional<std::string>& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  client::Delivery RunTask(const Task& task) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const Task& task, const client::Status& outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Handles the end of the run of a key that no task uses. ScheduleRemoval has to follow.
  void Discard(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleRemoval() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveDue() ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsUndelivered(const Key& key) const;
  void Remove(const Key& key) const;
  client::Delivery Gather(const Task& task);
  client::Config ConfigOf(const Task& task) const;
  std::string StateFolder() const;
  std::string target() const;

  const CollectionOptions options_;
  PolicyFile policy_;
  mutable Mutex mutex_;
  CondVar work_;
  std::deque<std::shared_ptr<Task>> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the definitions in waiting_
  std::map<Key, std::shared_ptr<Task>> present_ ABSL_GUARDED_BY(mutex_);  // waiting or running
  // Finished collections of runs that have not ended, and the attachment of their newest offer. A
  // repeated offer of a later attachment is checked: the previous relay may have lied about the
  // commit.
  std::map<Key, uint64_t> finished_ ABSL_GUARDED_BY(mutex_);
  uint64_t attachments_ ABSL_GUARDED_BY(mutex_) = 0;
  // Undelivered results, and when they are removed: never, before the end of the run.
  std::map<Key, absl::Duration> undelivered_ ABSL_GUARDED_BY(mutex_);
  // Running tasks whose run has ended; all exist.
  std::set<const Task*> ended_ ABSL_GUARDED_BY(mutex_);
  std::string target_ ABSL_GUARDED_BY(mutex_);  // of the newest offer
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
  ScheduledTask removal_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_COLLECTION_COLLECTION_RUNNER_H_
