// Follows the aggregator's change feed, for as long as the service lives.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_FEED_FOLLOWER_H_
#define MUSTER_SERVICES_COMMON_SERVICE_FEED_FOLLOWER_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"

namespace muster {

// One thread with one stream. Reconnects with full
// jitter; goes on after the last event it has dealt with. Thread-safe.
class FeedFollower {
 public:
  // `take` gets each event in order, on the follower's thread.
  FeedFollower(std::shared_ptr<grpc::Channel> channel,
               std::function<void(const v1::FollowChangesResponse&)> take);

  // Stops.
  ~FeedFollower();

  // Whether a stream is open and brought something within the last 15 s.
  bool connected() const;
  // For how long the aggregator was not heard, at first since this began. It says that it lives
  // every 5 s.
  absl::Duration silence() const;

 private:
  void Run(const std::stop_token& stop);
  void FollowOnce(const std::stop_token& stop);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::function<void(const v1::FollowChangesResponse&)> take_;
  std::optional<int64_t> cursor_;      // the thread's own
  const absl::Duration begun_;         // monotonic
  std::atomic<int64_t> heard_at_ = 0;  // monotonic nanoseconds
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_FEED_FOLLOWER_H_
