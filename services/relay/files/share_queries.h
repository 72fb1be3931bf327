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
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/shares/share_transfer.h"
#include "services/relay/files/local_share_index.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// Thread-safe.
class ShareQueries {
 public:
  using Done = std::function<void(absl::StatusOr<v1::AnswerShareQueryRequest>)>;

  // `local_index` outlives it.
  ShareQueries(ShareParts parts, const LocalShareIndex& local_index);
  ~ShareQueries() { Stop(); }

  // Sends a query; for the root relay. Calls `done` once, on any thread, with no lock held.
  // RELAY_NOT_FOUND, RELAY_NOT_REACHED (also without an answer within 10 s), OVERLOADED.
  void Ask(v1::ShareQuery query, Done done);
  // Handles an answer; ignores one that came too late.
  void HandleAnswer(v1::AnswerShareQueryRequest answer);

  // Answers a query or forwards it downstream; for the other relays. Does not wait.
  void HandleQuery(v1::ShareQuery query);

  // Ends the queries without an answer in time. Call it about once a second.
  void Tick();
  void Stop();

 private:
  struct Waiting {
    std::string relay;
    absl::Duration until;  // monotonic
    Done done;
  };

  v1::AnswerShareQueryRequest Answer(const v1::ShareQuery& query) const;

  const ShareParts parts_;
  const LocalShareIndex& local_index_;
  CallStopper stopper_;
  Mutex mutex_;
  std::map<std::string, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by id
  Executor executor_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_QUERIES_H_
