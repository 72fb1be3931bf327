// Queries of the root relay to relays that only the tree reaches: a query goes downstream on the
// attachment streams, the answer upstream by calls.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_QUERIES_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_QUERIES_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/due_queue.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/shares/share_transfer.h"
#include "services/relay/files/local_share_index.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// Thread-safe.
class ShareQueries {
 public:
  using Done = std::function<void(absl::StatusOr<v1::AnswerShareQueryRequest>)>;

  // All of them outlive it. `disk` runs the `done` of queries without an answer.
  ShareQueries(ShareParts parts, const LocalShareIndex& local_index, TimerService& timers,
               Executor& disk);
  ~ShareQueries() { Stop(); }

  // Sends a query; for the root relay. Calls `done` once, on any thread, with no lock held.
  // RELAY_NOT_FOUND, RELAY_NOT_REACHED (also without an answer within 10 s), OVERLOADED.
  void Ask(v1::ShareQuery query, Done done);
  // Handles an answer; ignores one that came too late.
  void HandleAnswer(v1::AnswerShareQueryRequest answer);

  // Answers a query or forwards it downstream; for the other relays. Does not wait.
  void HandleQuery(v1::ShareQuery query);

  // Cancels the calls to the parent and ends the waiting queries.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    std::string relay;
    Done done;
  };

  // Ends the queries without an answer in time.
  void ExpireDue() ABSL_LOCKS_EXCLUDED(mutex_);
  void ScheduleExpiry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::AnswerShareQueryRequest Answer(const v1::ShareQuery& query) const;

  const ShareParts parts_;
  const LocalShareIndex& local_index_;
  CallStopper stopper_;
  Mutex mutex_;
  std::map<std::string, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by id
  DueQueue<std::string> due_ ABSL_GUARDED_BY(mutex_);               // the ids of waiting_
  Executor executor_;  // answers queries: its calls to the parent block
  ScheduledTask expire_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_QUERIES_H_
