#include "services/status/config.h"

#include "services/common/service/common_fields.h"

namespace muster {
namespace {

void BindHeartbeats(HeartbeatConfig* config, Config* file) {
  file->Duration(
      "heartbeats.interval", &config->interval,
      "The shortest interval between two heartbeats of an agent. After two missing heartbeats an "
      "agent is late, after three suspect.",
      absl::Milliseconds(200), absl::Minutes(10));
  file->Int("heartbeats.target_rate", &config->target_rate,
            "The largest rate of all heartbeats per second: with more agents the interval grows.",
            1, 1'000'000);
  file->Duration(
      "heartbeats.lost_after", &config->lost_after,
      "An agent without a heartbeat for this time is lost. A run's own lost_after decides "
      "about its results.",
      absl::Seconds(1), absl::Hours(24));
  file->Duration(
      "heartbeats.grace", &config->grace,
      "The time after a start or a suspension of the service in which no sender is late; at least "
      "two intervals.",
      absl::Seconds(1), absl::Hours(1));
  file->Duration(
      "heartbeats.doubt_limit", &config->doubt_limit,
      "While more than a fifth of all agents are silent together, none of them becomes lost, for "
      "at most this time.",
      absl::Seconds(1), absl::Hours(24));
  file->Int("heartbeats.max_senders", &config->max_senders,
            "The largest number of known agents, connected or not; each takes about half a KiB.", 1,
            10'000'000);
  file->Duration("heartbeats.first_within", &config->first_within,
                 "A stream without a first heartbeat is ended after this time.",
                 absl::Milliseconds(100), absl::Minutes(10));
}

}  // namespace

void BindStatusConfig(StatusConfig* config, Config* file) {
  BindStateFolder(&config->state_folder,
                  "The folder of the certificate, tls/, and of the state, status.db.", file);
  file->Address("listen", &config->listen, "The address of gRPC. Port 0 means any free port.");
  file->AddressList("aggregator_targets", &config->aggregator_targets,
                    "The addresses of the aggregator: host:port each.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "How long a stop waits for calls in progress.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Int("threads.requests", &config->request_threads, "Threads for requests.", 1, 256);
  BindHeartbeats(&config->heartbeats, file);
}

}  // namespace muster
