#include "services/status/config.h"

#include "services/common/service/common_fields.h"

namespace muster {
namespace {

void BindHeartbeats(HeartbeatConfig* config, Config* file) {
  file->Duration("heartbeats.interval", &config->interval,
                 "After how long agents beat again, at least. Two missed: late; three: suspect.",
                 absl::Milliseconds(200), absl::Minutes(10));
  file->Int("heartbeats.target_rate", &config->target_rate,
            "Heartbeats a second of all agents: with more agents the interval grows.", 1,
            1'000'000);
  file->Duration("heartbeats.lost_after", &config->lost_after,
                 "Silence after which an agent is lost. A run's own lost_after decides about its "
                 "results.",
                 absl::Seconds(1), absl::Hours(24));
  file->Duration(
      "heartbeats.grace", &config->grace,
      "The time after a start or a hold-up (or two intervals) in which no sender is late.",
      absl::Seconds(1), absl::Hours(1));
  file->Duration(
      "heartbeats.doubt_limit", &config->doubt_limit,
      "The time for which the simultaneous silence of more than a fifth of all agents is doubted.",
      absl::Seconds(1), absl::Hours(24));
  file->Int("heartbeats.max_senders", &config->max_senders,
            "Agents that are remembered, connected or not; each takes about half a KiB.", 1,
            10'000'000);
  file->Duration("heartbeats.first_within", &config->first_within,
                 "A stream whose first heartbeat has not come by then is ended.",
                 absl::Milliseconds(100), absl::Minutes(10));
}

}  // namespace

void BindStatusConfig(StatusConfig* config, Config* file) {
  BindStateFolder(
      &config->state_folder,
      "Where the service keeps its certificate, tls/, and what it remembers, status.db.", file);
  file->Address("listen", &config->listen, "Where gRPC is served. Port 0 takes a free one.");
  file->AddressList("aggregator_targets", &config->aggregator_targets,
                    "Where the aggregator's gRPC is: host:port each.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "The time that a stop waits for calls in progress.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Int("threads.requests", &config->request_threads, "Threads that answer.", 1, 256);
  BindHeartbeats(&config->heartbeats, file);
}

}  // namespace muster
