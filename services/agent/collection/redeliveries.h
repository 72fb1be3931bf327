// Delivers kept results again whose stored bytes the fleet found damaged.
#ifndef MUSTER_SERVICES_AGENT_COLLECTION_REDELIVERIES_H_
#define MUSTER_SERVICES_AGENT_COLLECTION_REDELIVERIES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/agent/kept_results.h"
#include "services/client/client.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace muster {

struct RedeliveryOptions {
  KeptResults* kept = nullptr;  // these two outlive the user
  const Clock* clock = nullptr;
  // Returns the configuration of a delivery; called on the thread of the deliveries.
  std::function<client::Config(const ResultName&)> config;
  // More requests are dropped; the relay repeats them.
  size_t max_requests = 1'000;
};

// Delivers one result at a time on its own thread, because a delivery blocks. Only the relay says
// that the fleet wants a result: the aggregator ignores one that it has intact, and a request that
// is repeated waits for a minute, and twice as long each time. A result that is not kept, or whose
// file was changed, is declined with the reason. A delivery that fails for another reason is tried
// again a few times. Thread-safe.
class Redeliveries {
 public:
  static constexpr absl::Duration kPause = absl::Minutes(1);
  static constexpr absl::Duration kMaxPause = absl::Hours(1);
  static constexpr int kMaxTries = 5;  // of one request

  explicit Redeliveries(RedeliveryOptions options);
  // Calls Stop.
  ~Redeliveries();

  // Handles an offer with `redelivery`, for this node. Does not block.
  void Request(const v1::CollectionOffer& offer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops the requests of the previous relay, and ends a delivery through it.
  void OnAttached() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a delivery that is in progress. Blocks.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Handled {
    absl::Duration again_at;  // monotonic
    absl::Duration pause;
  };
  struct Task {
    absl::Duration due;  // monotonic
    int tries = 0;
  };
  using Tasks = std::map<ResultName, Task>;

  void NoteHandled(const ResultName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(const ResultName& name, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  Tasks::iterator FindNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns an error if another try may succeed.
  absl::Status Handle(const ResultName& name, const std::stop_token& stop) const;
  absl::Status Decline(const ResultName& name, const absl::Status& why,
                       const std::stop_token& stop) const;

  const RedeliveryOptions options_;
  Mutex mutex_;
  CondVar changed_;
  Tasks tasks_ ABSL_GUARDED_BY(mutex_);
  // The next request for a result that was handled. Entries are removed when they are old.
  std::map<ResultName, Handled> handled_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::stop_source> current_ ABSL_GUARDED_BY(mutex_);  // of the running delivery
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_COLLECTION_REDELIVERIES_H_
