// The counters of a spool.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_SPOOL_COUNTERS_H_
#define MUSTER_SERVICES_RELAY_SPOOL_SPOOL_COUNTERS_H_

#include "services/common/base/metrics.h"

namespace muster {

struct SpoolCounters {
  explicit SpoolCounters(Metrics& metrics)
      : accepted(
            metrics.AddCounter("muster_relay_spool_taken_total",
                               "Results that were accepted while the relay was disconnected.")),
        refused(metrics.AddCounter("muster_relay_spool_refused_total",
                                   "Uploads refused because the spool is full.")),
        outcomes(metrics.AddCounters(
            "muster_relay_spool_outcomes_total",
            "Results that left the spool: committed, refused upstream, expired, or lost to the "
            "disk.",
            {"outcome"}, 4)) {
    // All of them are exported from the start.
    for (const char* outcome : {"committed", "refused", "expired", "lost"}) {
      outcomes.With({outcome});
    }
  }

  Counter accepted;
  Counter refused;
  Labelled<Counter> outcomes;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_SPOOL_COUNTERS_H_
