#include "services/aggregator/config.h"

#include <optional>
#include <string>

#include "services/common/identity/run_host.h"
#include "services/common/service/common_fields.h"

namespace muster {
void BindAggregatorConfig(AggregatorConfig* config, Config* file) {
  BindStateFolder(&config->state_folder,
                  "The folder of all durable state: the intermediate CA, the store, the blobs.",
                  file);
  file->Address("listen", &config->listen, "The address of gRPC. Port 0 means any free port.");
  file->Address(
      "join_listen", &config->join_listen,
      "The address at which machines without a certificate join. Port 0 means any free port.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  file->StringList(
      "advertise", &config->advertise,
      "Names and addresses at which clients reach this fleet; its certificates contain them.");
  file->String(
      "legacy_host", &config->legacy_host,
      "The host name for legacy clients of each new run, on a shared port, such as "
      "{run}.collect.example.org. Empty: each run has a separate port on the advertised hosts.",
      [](const std::string& value) -> std::optional<std::string> {
        if (value.empty() || IsRunHostPattern(value)) return std::nullopt;
        return std::string(kRunHostRule) + "; or nothing";
      });
  file->StringList("aggregator_targets", &config->aggregator_targets,
                   "The addresses of this service in credentials: host:port each. Empty: every "
                   "advertised host with the port of listen.");
  file->StringList(
      "join_targets", &config->join_targets,
      "The addresses for joining in join tokens: host:port each. Empty: every advertised "
      "host with the port of join_listen.");
  file->StringList(
      "status_targets", &config->status_targets,
      "The addresses of the status service: host:port each. Credentials contain them, and the "
      "aggregator follows the verdicts there. Empty: missing heartbeats have no effect.");
  file->StringList("relay_targets", &config->relay_targets,
                   "The addresses of the root relay in credentials: host:port each. Empty: every "
                   "advertised host with port 7445.");
  file->StringList("gateway_urls", &config->gateway_urls,
                   "The addresses of REST in credentials: https://host:port each.");
  file->StringList("status_urls", &config->status_urls,
                   "The addresses of the status listener in credentials of viewers: "
                   "https://host:port/ each. Empty: every advertised host with port 8002.");
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "How long a stop waits for calls in progress.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Duration("limits.upload_expiry", &config->upload_expiry,
                 "An upload without a stream is deleted after this time.", absl::Minutes(1),
                 absl::Hours(24 * 30));
  file->Int("limits.uploads", &config->max_uploads, "The largest number of open uploads.", 1,
            1'000'000);
  file->Int("limits.streams", &config->max_streams,
            "The largest number of open upload streams; each may hold a chunk in memory.", 1,
            100'000);
  file->Int("threads.requests", &config->request_threads, "Threads for requests.", 2, 256);
  file->Int("threads.disk", &config->disk_threads, "Threads that write and hash uploads.", 1, 256);
}

}  // namespace muster
