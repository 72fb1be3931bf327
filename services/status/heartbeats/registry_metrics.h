// The metrics of the registry of senders.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_METRICS_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_METRICS_H_

#include "services/common/base/metrics.h"

namespace muster {

// Thread-safe.
struct RegistryMetrics {
  explicit RegistryMetrics(Metrics& metrics);

  Labelled<Counter> heartbeats;
  Counter taken;
  Counter out_of_order;
  Labelled<Gauge> senders;
  Labelled<Counter> transitions;
  Counter probes;
  Counter duplicate_agents;
  Counter refused;
  Gauge interval;
  Gauge doubt;
  Gauge lag;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_METRICS_H_
