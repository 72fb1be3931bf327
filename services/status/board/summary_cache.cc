#include "services/status/board/summary_cache.h"

#include "services/status/board/watch_hub.h"

namespace muster {

std::shared_ptr<const v1::RunStatus> SummaryCache::Get(absl::Duration now,
                                                       absl::FunctionRef<v1::RunStatus()> make) {
  if (summary_ == nullptr || made_of_ != version_ || now - made_at_ >= kWatchPace) {
    summary_ = std::make_shared<const v1::RunStatus>(make());
    made_of_ = version_;
    made_at_ = now;
  }
  return summary_;
}

}  // namespace muster
