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
#include "services/agent/agent_state.h"
#include "services/agent/attach/collections.h"
#include "services/agent/collection/client_configs.h"
#include "services/agent/collection/redeliveries.h"
#include "services/agent/collection/undelivered_results.h"
#include "services/agent/jobs/node_policy.h"
#include "services/agent/kept_results.h"
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
  // Undelivered results, and the bytes of their folders. Beyond either limit those of ended runs
  // are removed; if that does not suffice, other collections wait.
  size_t max_undelivered = 1'000;
  int64_t max_undelivered_bytes = int64_t{4} << 30;
  // The limits of kept results, in case that the fleet's copy is damaged (KeptResults).
  int64_t max_kept_bytes = int64_t{1} << 30;
  absl::Duration max_kept_age = absl::Hours(24);
  // For the removal, and for requests to the fleet. They outlive the runner.
  const Clock* clock = nullptr;
  TimerService* timers = nullptr;
  Executor* executor = nullptr;
  // For tests: called without a lock when the work for a plugin has ended and its task is present.
  std::function<void(const std::string& plugin)> on_worked;
};

// Runs plugins in the order of their offers. A plugin that the policy does not admit, or that this
// node cannot run, gets an error result. Plugins and deliveries block, so each of `max_parallel`
// has a thread. The state of a collection stays until its run ends, because a repeated offer must
// not run the plugin again. A result that is not delivered stays longer (UndeliveredResults). After
// each attachment the runner asks the fleet whether the runs of these results have ended. A
// committed result is kept for a while, and delivered again on request. Thread-safe.
class CollectionRunner final : public Collections {
 public:
  // Kills the plugins that an earlier process of this agent left running.
  explicit CollectionRunner(CollectionOptions options);
  // Calls Stop.
  ~CollectionRunner() override;

  void Offer(const v1::CollectionOffer& offer, const std::string& relay_target) override;
  void OnAttached(const std::string& relay_target) override;
  void End(const v1::CollectionEnded& ended) override;

  // Stops running plugins; deliveries that have begun continue for up to a minute. Blocks.
  void Stop();

 private:
  using Key = ResultName;

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
  // Returns the first waiting task that may start.
  std::deque<std::shared_ptr<Task>>::iterator FindReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the undelivered results that are due, and plans the next removal. Has to follow each
  // change of undelivered_ or present_.
  void RemoveDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PlanReview(absl::Duration delay) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks the fleet for the ends of the runs of undelivered results.
  void Review() ABSL_LOCKS_EXCLUDED(mutex_);
  client::Delivery Gather(const Task& task);
  KeptResultsOptions KeptOptions() const;
  RedeliveryOptions Redelivery();
  std::string StateFolder() const;

  const CollectionOptions options_;
  ClientConfigs configs_;
  PolicyFile policy_;
  KeptResults kept_;
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
  UndeliveredResults undelivered_ ABSL_GUARDED_BY(mutex_);
  // Running tasks whose run has ended; all exist.
  std::set<const Task*> ended_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
  bool review_planned_ ABSL_GUARDED_BY(mutex_) = false;
  std::stop_source stop_review_;
  ScheduledTask removal_;
  ScheduledTask review_;
  ScheduledTask trim_;  // of kept_
  Redeliveries redeliveries_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_COLLECTION_COLLECTION_RUNNER_H_
