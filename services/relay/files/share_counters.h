// The metrics of a store of shared files.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_COUNTERS_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_COUNTERS_H_

#include "services/common/base/metrics.h"
#include "services/relay/files/share_record.h"

namespace muster {

struct ShareCounters {
  explicit ShareCounters(Metrics& metrics)
      : quota(metrics.AddGauge("muster_relay_share_quota_bytes", "The quota for shared files.")),
        accepted(metrics.AddCounter("muster_relay_shares_accepted_total",
                                    "Shared files that were received completely.")),
        refused(metrics.AddCounter("muster_relay_shares_refused_total",
                                   "Shared files refused because the quota is used.")),
        outcomes(metrics.AddCounters(
            "muster_relay_share_outcomes_total",
            "Outcomes of shared files: sent upstream or downstream, delivered (stored at the "
            "parent of the target), refused, expired, removed.",
            {"outcome"}, 6)) {
    // All of them are exported from the start.
    for (const char* outcome :
         {"passed-up", "passed-down", "delivered", "refused", "expired", "removed"}) {
      outcomes.With({outcome});
    }
  }

  // Counts a change to this record.
  void Count(const ShareRecord& record) const {
    const v1::ShareState state = record.share.state();
    switch (record.stage) {
      case ShareStage::kIncoming:
        return;
      case ShareStage::kPassedUp:
        return outcomes.With({"passed-up"}).Add();
      case ShareStage::kPassedDown:
        if (state == v1::SHARE_STATE_IN_TRANSIT) outcomes.With({"passed-down"}).Add();
        return;
      case ShareStage::kHeld:
        if (state == v1::SHARE_STATE_DELIVERED) outcomes.With({"delivered"}).Add();
        return;
      case ShareStage::kEnded:
        break;
    }
    outcomes
        .With({state == v1::SHARE_STATE_REFUSED   ? "refused"
               : state == v1::SHARE_STATE_EXPIRED ? "expired"
                                                  : "removed"})
        .Add();
  }

  const Gauge quota;
  const Counter accepted;
  const Counter refused;
  const Labelled<Counter> outcomes;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_COUNTERS_H_
