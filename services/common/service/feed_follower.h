// Follows the aggregator's change feed for as long as the service lives.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_FEED_FOLLOWER_H_
#define MUSTER_SERVICES_COMMON_SERVICE_FEED_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/metrics.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/service/stream_follower.h"

namespace muster {

// Reconnects with full jitter and resumes after the last event that was handled. Thread-safe.
class FeedFollower {
 public:
  // Calls `handle` with each event, in order and one at a time, on `executor`.
  FeedFollower(GetChannel aggregator, std::function<void(const v1::FollowChangesResponse&)> handle,
               TimerService& timers, Executor& executor);

  ~FeedFollower();

  // Waits for a running `handle`; none is called after it. Idempotent.
  void Stop() { follower_.Stop(); }

  // Returns whether an event arrived within the last 15 s.
  bool connected() const;
  // Returns the time since the last event; before the first one, since the construction. The
  // aggregator sends an event at least every 5 s.
  absl::Duration silence() const { return follower_.silence(); }

 private:
  using Follower = StreamFollower<v1::FollowChangesRequest, v1::FollowChangesResponse>;

  Follower::Options MakeOptions(GetChannel aggregator);
  v1::FollowChangesRequest MakeRequest() const;
  void Ended(const absl::Status& why);

  const std::function<void(const v1::FollowChangesResponse&)> handle_;
  std::string feed_;               // to which cursor_ belongs
  std::optional<int64_t> cursor_;  // used by the functions of follower_, one at a time
  Follower follower_;
};

// Adds the gauges of the follower of a service. `follower` outlives the samples of `metrics`; it is
// null before the service follows the feed.
void AddFeedGauges(Metrics& metrics, const std::unique_ptr<FeedFollower>& follower);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_FEED_FOLLOWER_H_
