// What the root asks of a relay that only the tree reaches: the question goes down the streams, the
// answer up by calls.
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

  // At the root. `done` is called once, from any thread, without a lock held. RELAY_NOT_FOUND,
  // RELAY_NOT_REACHED (also without an answer within 10 s), OVERLOADED.
  void Ask(v1::ShareQuery query, Done done);
  // The answer to one; nothing if nobody waits for it any more.
  void HandleAnswer(v1::AnswerShareQueryRequest answer);

  // At the other relays: answers it, or passes it on down. Does not wait.
  void HandleQuery(v1::ShareQuery query);

  // Ends those that were not answered in time. To be called every second or so.
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
