#include "services/status/config.h"

#include "services/common/service/common_fields.h"

namespace muster {

void BindStatusConfig(StatusConfig* config, Config* file) {
  BindStateFolder(&config->state_folder, "Where the service keeps its certificate: tls/.", file);
  file->Address("listen", &config->listen, "Where gRPC is served. Port 0 takes a free one.");
  file->StringList("aggregator_targets", &config->aggregator_targets,
                   "Where the aggregator's gRPC is: host:port each.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "How long a stop waits for calls under way.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Int("threads.requests", &config->request_threads, "Threads that answer.", 1, 256);
}

}  // namespace muster
