// Whether the observer may trust its own eyes: it blames itself before it blames many others.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_OBSERVER_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_OBSERVER_H_

#include <cstdint>
#include <deque>
#include <string>

#include "absl/time/time.h"

namespace muster {

// Two doubts: that this service itself was held up (then nobody is judged for a while), and that a
// large part of all senders fell silent within one interval (then the silent ones are not judged
// until they are few again, or for `limit`). Not thread-safe.
class Observer {
 public:
  struct Options {
    absl::Duration grace;  // nobody is judged for this long after a hold-up
    absl::Duration limit;  // silence of many is doubted for this long, then it is believed
  };

  explicit Observer(const Options& options) : options_(options) {}

  // Every tick, before the other two: `lag` after the moment at which it was to run.
  void Ticked(absl::Duration now, absl::Duration lag, absl::Duration interval);

  // `fell_silent` more senders miss two heartbeats, without having closed their connection: that is
  // a word from the other side. `others` were there with them and are not silent; `silent` were
  // doubted before and still are silent.
  void Count(absl::Duration now, int64_t fell_silent, int64_t others, int64_t silent,
             absl::Duration interval);

  // Nobody is judged before this.
  absl::Duration held_until() const { return held_until_; }
  bool holds(absl::Duration now) const { return now < held_until_; }

  // Many are silent: none of the silent is judged.
  bool doubts_many() const { return doubts_many_; }

  // Why, in words; empty when there is no doubt.
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

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_OBSERVER_H_
