#include "services/status/board/plugin_pace.h"

#include <optional>
#include <utility>

#include "services/status/board/pace.h"
#include "services/status/board/pair.h"

namespace muster {

void PluginPace::Moved(Pair& pair, int64_t completed, absl::Duration now) {
  Work& work = *pair.work;
  if (const auto step = work.motion.Moved(completed, now)) steps_.Add(*step);
  Append(pair);
}

void PluginPace::Resume(Pair& pair, absl::Duration now) {
  if (!pair.work->motion.moved()) return;
  pair.work->motion.Resume(now);
  Append(pair);
}

void PluginPace::Append(Pair& pair) {
  Remove(pair);
  pair.work->moving = moving_.insert(moving_.end(), &pair);
  pair.work->in_moving = true;
}

void PluginPace::Remove(Pair& pair) {
  if (std::exchange(pair.work->in_moving, false)) moving_.erase(pair.work->moving);
}

void PluginPace::Finish(Pair& pair, absl::Duration now) {
  if (pair.work == nullptr) return;
  Remove(pair);
  pair.work->last_rate = pair.work->motion.Rate(now).value_or(0);
  pair.work->slow = false;
}

Pair* PluginPace::PopStuck(absl::Duration now) {
  if (moving_.empty()) return nullptr;
  Pair* const pair = moving_.front();
  if (now - pair->work->motion.moved_at() < stuck_after_) return nullptr;
  Remove(*pair);
  return pair;
}

std::vector<Pair*> PluginPace::Compare(std::deque<Pair>& pairs, absl::Duration now) {
  stuck_after_ = StuckAfter(steps_);
  std::vector<Pair*> changed;
  if (steps_.count() == 0) return changed;
  std::vector<double> rates;
  std::vector<std::pair<Pair*, double>> unfinished;
  for (Pair& pair : pairs) {
    if (pair.work == nullptr) continue;
    const auto rate =
        pair.pending() ? pair.work->motion.Rate(now) : std::optional(pair.work->last_rate);
    if (!rate || *rate <= 0) continue;
    rates.push_back(*rate);
    if (pair.pending()) unfinished.emplace_back(&pair, *rate);
  }
  const auto below = SlowBelow(std::move(rates));
  for (const auto& [pair, rate] : unfinished) {
    const bool slow = below && rate < *below;
    if (std::exchange(pair->work->slow, slow) != slow) changed.push_back(pair);
  }
  return changed;
}

}  // namespace muster
