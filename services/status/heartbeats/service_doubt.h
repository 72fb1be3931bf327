// The doubt of the service in its own network or machine.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_SERVICE_DOUBT_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_SERVICE_DOUBT_H_

#include <cstdint>
#include <deque>
#include <string>

#include "absl/time/time.h"

namespace muster {

// There are two kinds of doubt. After a hold-up of this service, no sender is judged for a while.
// When a large part of all senders fell silent within one interval, the silent ones are not judged
// until they are few again, or for `limit`. Not thread-safe.
class ServiceDoubt {
 public:
  struct Options {
    absl::Duration grace;  // no sender is judged for this long after a hold-up
    absl::Duration limit;  // the silence of many is doubted for this long
  };

  explicit ServiceDoubt(const Options& options) : options_(options) {}

  // Called in each tick, before Count. `lag`: by how much the tick is late.
  void Ticked(absl::Duration now, absl::Duration lag, absl::Duration interval);

  // `fell_silent` more senders miss two heartbeats and have not closed their connection. `others`
  // are online. `silent` were doubted before and are still silent.
  void Count(absl::Duration now, int64_t fell_silent, int64_t others, int64_t silent,
             absl::Duration interval);

  // No sender is judged before this time.
  absl::Duration held_until() const { return held_until_; }
  bool holds(absl::Duration now) const { return now < held_until_; }

  // Many are silent: no silent sender is judged.
  bool doubts_many() const { return doubts_many_; }

  // Returns the reason as a text; empty if there is no doubt.
  std::string Doubt(absl::Duration now) const;

 private:
  struct Burst {
    absl::Duration at;
    int64_t count;
  };

  const Options options_;
  absl::Duration held_until_ = -absl::InfiniteDuration();
  absl::Duration lag_;
  std::deque<Burst> bursts_;  // of the last interval
  bool doubts_many_ = false;
  absl::Duration since_;
  std::string many_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_SERVICE_DOUBT_H_
