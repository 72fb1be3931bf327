// When to send a heartbeat.
#ifndef MUSTER_SERVICES_CLIENT_BEAT_SCHEDULE_H_
#define MUSTER_SERVICES_CLIENT_BEAT_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <random>

#include "absl/time/time.h"

namespace muster::client {

// The times of one connection's heartbeats: as long after the last one as the server wants, give or
// take 20 %; at once when it is new or was probed; soon, but 250 ms after the last news, when there
// is news. All times by a clock that never jumps. Not thread-safe.
class BeatSchedule {
 public:
  explicit BeatSchedule(uint64_t seed = std::random_device{}()) : random_(seed) {}

  // A new connection. The interval of before counts until the first answer.
  void Opened(absl::Duration now);
  // A beat was sent; `news`: it said something new.
  void Sent(absl::Duration now, bool news);
  // `interval`: when the server wants the next one, if it says.
  void Answered(std::optional<absl::Duration> interval);
  void Probed() { probed_ = true; }

  // When the next beat is due; `news`: there is something new to say.
  absl::Duration Due(bool news) const;
  // When to take the connection for lost, because nothing is answered.
  absl::Duration GiveUp() const;

 private:
  std::mt19937_64 random_;
  absl::Duration interval_ = absl::Seconds(10);
  absl::Duration sent_ = -absl::InfiniteDuration();
  absl::Duration news_sent_ = -absl::InfiniteDuration();
  absl::Duration unanswered_since_ = absl::InfiniteDuration();
  double spread_ = 1;  // of this beat: 0.8 to 1.2
  bool probed_ = false;
};

// How long to wait before a new connection, so that a fleet does not come back as one wave: at
// random between 1 s and a ceiling that doubles from 8 s to 45 s. Not thread-safe.
class ReconnectWait {
 public:
  explicit ReconnectWait(uint64_t seed = std::random_device{}()) : random_(seed) {}

  // Not shorter than what the server asked for, which is spread upward; 10 min at most.
  absl::Duration Next(std::optional<absl::Duration> asked);
  // The server does not know heartbeats (yet): doubles from 8 s to 10 min.
  absl::Duration NextUnserved();
  // A beat was answered: begin small again.
  void Reset() { tries_ = 0; }

 private:
  absl::Duration Between(absl::Duration low, absl::Duration high);

  std::mt19937_64 random_;
  int tries_ = 0;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_BEAT_SCHEDULE_H_
