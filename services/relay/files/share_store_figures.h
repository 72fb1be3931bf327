// What a store of shared files counts.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_FIGURES_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_FIGURES_H_

#include "services/common/base/metrics.h"
#include "services/relay/files/share_store.h"

namespace muster {

struct ShareStore::Figures {
  explicit Figures(Metrics& metrics)
      : files(metrics.AddGauge("muster_relay_shares",
                               "Shared files that are here, or are arriving.")),
        bytes(metrics.AddGauge("muster_relay_share_bytes",
                               "What they take of the quota for shared files.")),
        quota(metrics.AddGauge("muster_relay_share_quota_bytes", "The quota for shared files.")),
        taken(metrics.AddCounter("muster_relay_shares_taken_total",
                                 "Shared files that were taken whole.")),
        refused(metrics.AddCounter("muster_relay_shares_refused_total",
                                   "Shared files refused for want of room.")),
        outcomes(metrics.AddCounters(
            "muster_relay_share_outcomes_total",
            "What became of shared files: passed on up or down, delivered (they lie at their "
            "target's relay), refused, expired, removed.",
            {"outcome"}, 6)) {
    // There from the first on.
    for (const char* outcome :
         {"passed-up", "passed-down", "delivered", "refused", "expired", "removed"}) {
      outcomes.With({outcome});
    }
  }

  void Count(const ShareRecord& is) const {
    switch (is.stage) {
      case ShareStage::kIncoming:
        return;
      case ShareStage::kPassedUp:
        return outcomes.With({"passed-up"}).Add();
      case ShareStage::kPassedDown:
        if (is.share.state() == v1::SHARE_STATE_IN_TRANSIT) {
          outcomes.With({"passed-down"}).Add();
        }
        return;
      case ShareStage::kHeld:
        if (is.share.state() == v1::SHARE_STATE_DELIVERED) outcomes.With({"delivered"}).Add();
        return;
      case ShareStage::kEnded:
        break;
    }
    const v1::ShareState state = is.share.state();
    outcomes
        .With({state == v1::SHARE_STATE_REFUSED   ? "refused"
               : state == v1::SHARE_STATE_EXPIRED ? "expired"
                                                  : "removed"})
        .Add();
  }

  const Gauge files;
  const Gauge bytes;
  const Gauge quota;
  const Counter taken;
  const Counter refused;
  const Labelled<Counter> outcomes;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_FIGURES_H_
