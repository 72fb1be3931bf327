#include "services/status/heartbeats/registry_metrics.h"

#include "muster/v1/status.pb.h"

namespace muster {

RegistryMetrics::RegistryMetrics(Metrics& metrics)
    : heartbeats(metrics.AddCounters("muster_heartbeats_total",
                                     "Heartbeats by result: taken (accepted), or out of order.",
                                     {"result"}, 2)),
      taken(heartbeats.With({"taken"})),
      out_of_order(heartbeats.With({"out_of_order"})),
      senders(metrics.AddGauges("muster_senders", "Senders of heartbeats by presence.",
                                {"presence"}, v1::Presence_ARRAYSIZE)),
      transitions(metrics.AddCounters("muster_sender_transitions_total",
                                      "Changes of senders' presence, by the new one.", {"presence"},
                                      v1::Presence_ARRAYSIZE)),
      probes(metrics.AddCounter("muster_heartbeat_probes_total",
                                "Senders that were asked for a missing heartbeat.")),
      duplicate_agents(metrics.AddCounter("muster_duplicate_agents_total",
                                          "Streams of two processes with one identity.")),
      refused(metrics.AddCounter("muster_senders_refused_total",
                                 "Senders refused because there are too many.")),
      interval(metrics.AddGauge("muster_heartbeat_interval_seconds",
                                "The interval between heartbeats that is sent to senders.")),
      doubt(metrics.AddGauge("muster_heartbeat_doubt",
                             "1 while the service suspects its own network or machine and "
                             "suspends judgement.")),
      lag(metrics.AddGauge("muster_heartbeat_lag_seconds",
                           "The delay of the last check of the senders.")) {}

}  // namespace muster
