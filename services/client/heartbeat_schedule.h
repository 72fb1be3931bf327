// The times of heartbeats.
#ifndef MUSTER_SERVICES_CLIENT_HEARTBEAT_SCHEDULE_H_
#define MUSTER_SERVICES_CLIENT_HEARTBEAT_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <random>

#include "absl/time/time.h"
#include "services/common/base/backoff.h"

namespace muster::client {

// Computes the times of one connection's heartbeats: after the interval that the server requests,
// randomised by 20 %; immediately on a new connection or after a probe; soon after a change, at
// least 250 ms after the previous change. All times are monotonic. Not thread-safe.
class HeartbeatSchedule {
 public:
  explicit HeartbeatSchedule(uint64_t seed = std::random_device{}()) : random_(seed) {}

  // A new connection. The previous interval applies until the first answer.
  void Opened(absl::Duration now);
  // A heartbeat was sent; `changed`: it contained a change.
  void Sent(absl::Duration now, bool changed);
  // `interval`: from the server, if present.
  void Answered(std::optional<absl::Duration> interval);
  void Probed() { probed_ = true; }

  // Returns the time of the next heartbeat; `changed`: there is a change to send.
  absl::Duration Due(bool changed) const;
  // Returns the time at which an unanswered connection is lost.
  absl::Duration GiveUp() const;

 private:
  std::mt19937_64 random_;
  absl::Duration interval_ = absl::Seconds(10);
  absl::Duration sent_ = -absl::InfiniteDuration();
  absl::Duration change_sent_ = -absl::InfiniteDuration();
  absl::Duration unanswered_since_ = absl::InfiniteDuration();
  double spread_ = 1;  // of this heartbeat: 0.8 to 1.2
  bool probed_ = false;
};

// The waits before a new connection, so that a fleet does not reconnect in one wave.
inline constexpr BackoffOptions kReconnectBackoff{
    .first = absl::Seconds(8), .most = absl::Seconds(45), .least = absl::Seconds(1)};
// The waits before the next call of a server that does not support heartbeats or rejects them.
inline constexpr BackoffOptions kUnservedBackoff{
    .first = absl::Seconds(8), .most = absl::Minutes(10), .least = absl::Seconds(4)};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HEARTBEAT_SCHEDULE_H_
