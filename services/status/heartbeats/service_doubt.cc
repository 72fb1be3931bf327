#include "services/status/heartbeats/service_doubt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Fewer may well fail together; a fleet of three has no crowd.
constexpr int64_t kFew = 5;

// More than a fifth.
bool AreMany(int64_t silent, int64_t of) { return silent >= kFew && silent * 5 > of; }

}  // namespace

void ServiceDoubt::Ticked(absl::Duration now, absl::Duration lag, absl::Duration interval) {
  if (lag <= interval) return;
  lag_ = lag;
  held_until_ = std::max(held_until_, now + options_.grace);
}

void ServiceDoubt::Count(absl::Duration now, int64_t fell_silent, int64_t others, int64_t silent,
                         absl::Duration interval) {
  while (!bursts_.empty() && bursts_.front().at <= now - interval) bursts_.pop_front();
  if (fell_silent > 0) bursts_.push_back({now, fell_silent});
  int64_t burst = 0;
  for (const Burst& b : bursts_) burst += b.count;
  if (!doubts_many_) {
    if (!AreMany(burst, burst + others)) return;
    doubts_many_ = true;
    since_ = now;
    many_ =
        absl::StrCat(burst, " of ", burst + others, " senders fell silent within ",
                     absl::FormatDuration(interval), ": the fault is likely between here and them");
    return;
  }
  const int64_t all = silent + fell_silent;
  if (AreMany(all, all + others) && now - since_ < options_.limit) return;
  doubts_many_ = false;
  bursts_.clear();
}

std::string ServiceDoubt::Doubt(absl::Duration now) const {
  if (holds(now)) {
    return absl::StrCat("this service was held up for ",
                        absl::FormatDuration(absl::Trunc(lag_, absl::Seconds(1))),
                        ": it waits for the heartbeats of its senders");
  }
  return doubts_many_ ? many_ : "";
}

}  // namespace muster
