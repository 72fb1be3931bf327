#include "services/relay/config.h"

#include "services/common/service/common_fields.h"

namespace muster {
namespace {

void BindJobs(JobsConfig* config, Config* file) {
  file->Int(
      "jobs.max_running", &config->max_running,
      "The largest number of running jobs; more are rejected. One submitter may have half of it.",
      1, 100'000);
  file->ByteSize("jobs.max_output", &config->max_output,
                 "Stored output of one job; the rest is cut and reported.", 1024,
                 uint64_t{1} << 40);
  file->Duration("jobs.retention", &config->retention,
                 "How long finished jobs are stored, with their output; longer while the audit log "
                 "lacks their records.",
                 absl::Minutes(1), absl::Hours(24 * 3650));
}

void BindShares(SharesConfig* config, Config* file) {
  file->String("shares.folder", &config->folder,
               "The folder of shared files. Empty: shares/ in the state folder.");
  file->ByteSize("shares.quota", &config->quota,
                 "The largest size of all shared files; one source may use half of it.",
                 uint64_t{1} << 20, uint64_t{1} << 50);
  file->Int("shares.max_files", &config->max_files,
            "The largest number of shared files; one source may use half of it.", 1, 1'000'000);
  file->ByteSize("shares.max_size", &config->max_size, "The largest size of one shared file.", 1,
                 uint64_t{1} << 50);
}

}  // namespace

void BindRelayConfig(RelayConfig* config, Config* file) {
  BindStateFolder(&config->state_folder,
                  "The folder of the certificate, tls/, and of all durable state.", file);
  file->Address("listen", &config->listen, "The address of gRPC. Port 0 means any free port.");
  file->Address(
      "join_listen", &config->join_listen,
      "The address at which machines without a certificate join. Port 0 means any free port.");
  file->AddressList("parents", &config->parents,
                    "The addresses of the parent relays, host:port each, the preferred one first. "
                    "Empty: those of its join; a relay that has not joined is the root relay.");
  file->AddressList("aggregator_targets", &config->aggregator_targets,
                    "For the root relay: the addresses of the aggregator, host:port each.");
  file->AddressList("status_targets", &config->status_targets,
                    "For the root relay: the addresses of the status service, host:port each.");
  file->AddressList("jobs_targets", &config->jobs_targets,
                    "For the root relay: the addresses of the jobs service, host:port each.");
  file->StringList("advertise", &config->advertise,
                   "The addresses of this relay for its children, host:port each.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "How long a stop waits for calls in progress.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Duration(
      "interval", &config->interval,
      "The interval between heartbeats of children and relay. A stream without messages for "
      "three intervals is ended.",
      absl::Milliseconds(200), absl::Minutes(5));
  file->Int("max_nodes", &config->max_nodes,
            "The largest number of descendants, attached or remembered.", 1, 10'000'000);
  file->Int("threads.requests", &config->request_threads, "Threads for requests.", 1, 256);
  BindJobs(&config->jobs, file);
  BindShares(&config->shares, file);
  BindForwarding(&config->forwarding, file);
}

}  // namespace muster
