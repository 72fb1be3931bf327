#include "services/aggregator/config.h"

#include <optional>
#include <string>

#include "services/common/identity/run_host.h"
#include "services/common/service/common_fields.h"

namespace muster {
void BindAggregatorConfig(AggregatorConfig* config, Config* file) {
  BindStateFolder(&config->state_folder,
                  "Where everything is kept: the intermediate, the store, the blobs.", file);
  file->Address("listen", &config->listen, "Where gRPC is served. Port 0 takes a free one.");
  file->Address("join_listen", &config->join_listen,
                "Where machines join that have no certificate yet. Port 0 takes a free one.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  file->StringList("advertise", &config->advertise,
                   "Names and addresses by which clients reach this fleet; they stand in its "
                   "certificates.");
  file->String(
      "legacy_host", &config->legacy_host,
      "Gives every new run its own host name for legacy clients, on a shared port, such as "
      "{run}.collect.example.org. Empty: each run has its own port on the advertised hosts.",
      [](const std::string& value) -> std::optional<std::string> {
        if (value.empty() || IsRunHostPattern(value)) return std::nullopt;
        return std::string(kRunHostRule) + "; or nothing";
      });
  file->StringList("aggregator_targets", &config->aggregator_targets,
                   "What credentials say of where gRPC is: host:port each. Empty: every advertised "
                   "host with the port of listen.");
  file->StringList("join_targets", &config->join_targets,
                   "What join tokens say of where to join: host:port each. Empty: every advertised "
                   "host with the port of join_listen.");
  file->StringList(
      "status_targets", &config->status_targets,
      "Where the status service is: host:port each. Credentials say it, and its verdicts "
      "on who fell silent are followed there. Empty: nothing is timed out for silence.");
  file->StringList("relay_targets", &config->relay_targets,
                   "What credentials say of where the relay at the centre is, below which nodes "
                   "hang: host:port each. Empty: every advertised host with port 7445.");
  file->StringList("gateway_urls", &config->gateway_urls,
                   "What credentials say of where REST is: https://host:port each.");
  file->StringList("status_urls", &config->status_urls,
                   "What viewers' credentials say of where the status of a run is shown: "
                   "https://host:port/ each. Empty: every advertised host with port 8002.");
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "The time that a stop waits for calls in progress.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Duration("limits.upload_expiry", &config->upload_expiry,
                 "An upload that no stream carries is forgotten after this.", absl::Minutes(1),
                 absl::Hours(24 * 30));
  file->Int("limits.uploads", &config->max_uploads, "Uploads that may be open.", 1, 1'000'000);
  file->Int("limits.streams", &config->max_streams,
            "Upload streams at a time: each may hold a chunk of memory.", 1, 100'000);
  file->Int("threads.requests", &config->request_threads, "Threads that answer.", 2, 256);
  file->Int("threads.disk", &config->disk_threads, "Threads that write and hash uploads.", 1, 256);
}

}  // namespace muster
