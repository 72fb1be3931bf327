#include "services/aggregator/config.h"

#include <optional>
#include <string>

#include "services/common/identity/run_host.h"
#include "services/common/service/common_fields.h"

namespace muster {
void BindAggregatorConfig(AggregatorConfig* config, Config* file) {
  BindStateFolder(&config->state_folder,
                  "The folder of the intermediate CA, the store and the blobs.", file);
  file->Address("listen", &config->listen,
                "The address of the gRPC listener. Port 0: a free port.");
  file->Address(
      "join_listen", &config->join_listen,
      "The address of the listener for machines without a certificate. Port 0: a free port.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  file->StringList(
      "advertise", &config->advertise,
      "Names and addresses by which clients reach this fleet. Its certificates contain "
      "them.");
  file->String(
      "legacy_host", &config->legacy_host,
      "The host name for legacy clients of each new run, on a shared port, such as "
      "{run}.collect.example.org. Empty: each run has a separate port on the advertised hosts.",
      [](const std::string& value) -> std::optional<std::string> {
        if (value.empty() || IsRunHostPattern(value)) return std::nullopt;
        return std::string(kRunHostRule) + "; or nothing";
      });
  file->StringList("aggregator_targets", &config->aggregator_targets,
                   "The gRPC addresses in credentials, as host:port. Empty: every advertised host "
                   "with the port of listen.");
  file->StringList("join_targets", &config->join_targets,
                   "The addresses in join tokens, as host:port. Empty: every advertised host with "
                   "the port of join_listen.");
  file->StringList(
      "status_targets", &config->status_targets,
      "The addresses of the status service, as host:port: for credentials, and to follow its "
      "verdicts on missing heartbeats. Empty: no pair is timed out for missing heartbeats.");
  file->StringList("relay_targets", &config->relay_targets,
                   "The addresses of the root relay in credentials, as host:port. Empty: every "
                   "advertised host with port 7445.");
  file->StringList("tunnel_targets", &config->tunnel_targets,
                   "The gateways through which nodes and relays behind proxies that pass no HTTP/2 "
                   "join and attach to the root relay, as wss://host:port. Empty: none.");
  file->StringList("jobs_targets", &config->jobs_targets,
                   "The addresses of the jobs service in credentials, as host:port. Empty: every "
                   "advertised host with port 7446.");
  file->StringList("gateway_urls", &config->gateway_urls,
                   "The addresses of the REST API in credentials, as https://host:port.");
  file->StringList("status_urls", &config->status_urls,
                   "The addresses of the status of a run in credentials of viewers, as "
                   "https://host:port/. Empty: every advertised host with port 8002.");
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "The time for which a stop waits for calls in progress.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Duration("limits.upload_expiry", &config->uploads.expiry,
                 "An upload without a stream is removed after this time.", absl::Minutes(1),
                 absl::Hours(24 * 30));
  file->ByteSize("limits.disk_reserve", &config->disk_reserve,
                 "Disk space that is kept to start, cancel and delete on a full disk; at most 1/32 "
                 "of the file system. 0: none.",
                 0, uint64_t{1} << 40);
  file->Int("limits.uploads", &config->uploads.max_uploads,
            "Uploads that may be open. One node may open 256, another identity half, one run three "
            "quarters of them.",
            1, 1'000'000);
  file->Int("limits.streams", &config->uploads.max_streams,
            "Upload streams at a time. Each may hold a chunk in memory. One node may open 16, "
            "another identity half, one run three quarters of them.",
            1, 100'000);
  file->ByteSize("limits.result_bytes", &config->uploads.max_result_bytes,
                 "The size of the largest result.", 1 << 20, uint64_t{1} << 50);
  file->Int("limits.identity_disk_percent", &config->uploads.identity_percent,
            "The share of the free disk that unfinished uploads of one identity may take.", 1, 100);
  file->Int("limits.run_disk_percent", &config->uploads.run_percent,
            "The share of the free disk that unfinished uploads of one run may take.", 1, 100);
  file->Int("limits.run_results_percent", &config->run_results_percent,
            "The share of the disk, free or not, that the committed results of one run may take.",
            1, 100);
  file->Duration("retention.age", &config->keep_age,
                 "Runs that ended longer ago are deleted. 0s: no such rule.", absl::ZeroDuration(),
                 absl::Hours(24 * 3650));
  file->Int("retention.runs", &config->keep_runs,
            "Of the runs that have ended, this many remain; those that ended first are deleted. "
            "0: no such rule.",
            0, 1'000'000'000);
  file->ByteSize("retention.bytes", &config->keep_bytes,
                 "The results and archives of the runs that have ended take at most this much; "
                 "those that ended first are deleted. 0: no such rule.",
                 0, uint64_t{1} << 60);
  file->ByteSize(
      "verify.rate", &config->verify_rate,
      "Bytes per second at which all stored results are compared with their checksums in "
      "the background. 0: never.",
      0, uint64_t{1} << 40);
  file->Duration("verify.every", &config->verify_every,
                 "The time between two such comparisons of the whole store.", absl::Seconds(1),
                 absl::Hours(24 * 365));
  file->Int("threads.requests", &config->request_threads, "Threads that answer calls.", 2, 256);
  file->Int("threads.disk", &config->disk_threads, "Threads that write and hash uploads.", 1, 256);
  file->Int("threads.seal", &config->seal_threads,
            "Threads that build archives, each of one run at a time.", 1, 64);
}

}  // namespace muster
