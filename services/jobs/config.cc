#include "services/jobs/config.h"

#include "services/common/service/common_fields.h"

namespace muster {

void BindJobsServiceConfig(JobsServiceConfig* config, Config* file) {
  BindStateFolder(&config->state_folder,
                  "The folder of the certificate, tls/, of the state, jobs.db, contents/ and "
                  "workspaces/, and of "
                  "the key that encrypts secrets and workspaces, store.key.",
                  file);
  file->Address("listen", &config->listen, "The address of gRPC. Port 0 means any free port.");
  file->AddressList("aggregator_targets", &config->aggregator_targets,
                    "The addresses of the aggregator: host:port each.");
  file->AddressList("relay_targets", &config->relay_targets,
                    "The addresses of the root relay: host:port each.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "How long a stop waits for calls in progress.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Int("threads.requests", &config->request_threads, "Threads for requests.", 1, 256);
  file->ByteSize("limits.disk_reserve", &config->disk_reserve,
                 "Disk space that is kept to start, and to cancel deployments, on a full disk; at "
                 "most 1/32 of the file system. 0: none.",
                 0, uint64_t{1} << 40);
  file->ByteSize("contents.quota", &config->content_quota,
                 "The largest size of the contents of files of deployments, with those that are "
                 "being uploaded; one operator may use half of it.",
                 uint64_t{1} << 20, uint64_t{1} << 50);
  file->Int("contents.max_count", &config->max_contents, "The largest number of these contents.", 1,
            10'000'000);
  file->ByteSize("workspaces.quota", &config->workspace_quota,
                 "The largest size of the versions of all workspaces, with those that are being "
                 "saved.",
                 uint64_t{1} << 20, uint64_t{1} << 50);
}

}  // namespace muster
