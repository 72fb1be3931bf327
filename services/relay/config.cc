#include "services/relay/config.h"

#include "services/common/service/common_fields.h"

namespace muster {
namespace {

void BindJobs(JobsConfig* config, Config* file) {
  file->Int("jobs.max_running", &config->max_running, "Jobs that run at a time; more are refused.",
            1, 100'000);
  file->Int("jobs.max_output", &config->max_output,
            "Bytes of output that are kept of one job; what is more is cut, visibly.", 1024,
            int64_t{1} << 40);
  file->Duration("jobs.retention", &config->retention,
                 "How long jobs that have ended are kept, with their output.", absl::Minutes(1),
                 absl::Hours(24 * 3650));
}

void BindShares(SharesConfig* config, Config* file) {
  file->String("shares.folder", &config->folder,
               "Where shared files are kept. Empty: shares/ in the state folder.");
  file->Int("shares.quota", &config->quota, "Bytes that shared files may take; more are refused.",
            1 << 20, int64_t{1} << 50);
  file->Int("shares.max_files", &config->max_files, "How many there may be at a time.", 1,
            1'000'000);
  file->Int("shares.max_size", &config->max_size, "Bytes of the largest one that is taken.", 1,
            int64_t{1} << 50);
}

}  // namespace

void BindRelayConfig(RelayConfig* config, Config* file) {
  BindStateFolder(&config->state_folder,
                  "Where the relay keeps its certificate, tls/, and what has to last.", file);
  file->Address("listen", &config->listen, "Where gRPC is served. Port 0 takes a free one.");
  file->Address("join_listen", &config->join_listen,
                "Where machines join through it that have no certificate yet. Port 0 takes a free "
                "one.");
  file->StringList(
      "parents", &config->parents,
      "The relays it hangs below, host:port each, tried in turn. None: it is the relay "
      "at the centre, beside the aggregator.");
  file->StringList("aggregator_targets", &config->aggregator_targets,
                   "At the centre: where the aggregator's gRPC is, host:port each.");
  file->StringList("status_targets", &config->status_targets,
                   "At the centre: where the status service's gRPC is, host:port each.");
  file->StringList("advertise", &config->advertise,
                   "Where what hangs below this relay reaches it, host:port each.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "How long a stop waits for calls under way.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Duration("interval", &config->interval,
                 "How often nodes and relay say something to each other. After three times that, a "
                 "stream on which nothing came is dead.",
                 absl::Milliseconds(200), absl::Minutes(5));
  file->Int("max_nodes", &config->max_nodes, "Nodes and relays below this one, attached or known.",
            1, 10'000'000);
  file->Int("threads.requests", &config->request_threads, "Threads that answer.", 1, 256);
  BindJobs(&config->jobs, file);
  BindShares(&config->shares, file);
  BindForwarding(&config->forwarding, file);
}

}  // namespace muster
