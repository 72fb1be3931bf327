// The aggregator's configuration file.
#ifndef MUSTER_SERVICES_AGGREGATOR_CONFIG_H_
#define MUSTER_SERVICES_AGGREGATOR_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/aggregator/uploads/upload_quota.h"
#include "services/common/base/config.h"
#include "services/common/base/text_values.h"
#include "services/common/service/service_main.h"

namespace muster {

struct AggregatorConfig {
  std::string state_folder;  // intermediate, store key, tls/, state.db, blobs/
  HostPort listen = {"127.0.0.1", 7440};
  HostPort join_listen = {"127.0.0.1", 7444};
  int64_t health_port = 0;
  int64_t inspection_port = 0;
  std::string addresses_file;
  std::vector<std::string> advertise = {"127.0.0.1", "localhost"};
  std::string legacy_host;  // a pattern (run_host.h), or empty
  std::vector<std::string> aggregator_targets;
  std::vector<std::string> status_targets;
  std::vector<std::string> join_targets;
  std::vector<std::string> relay_targets;
  std::vector<std::string> tunnel_targets;
  std::vector<std::string> jobs_targets;
  std::vector<std::string> gateway_urls;
  std::vector<std::string> status_urls;
  LogConfig log;
  absl::Duration drain = absl::Seconds(10);
  uint64_t disk_reserve = uint64_t{32} << 20;
  uint64_t verify_rate = uint64_t{8} << 20;
  absl::Duration verify_every = absl::Hours(24);
  UploadLimits uploads;
  int64_t run_results_percent = 80;
  absl::Duration keep_age;
  int64_t keep_runs = 0;
  uint64_t keep_bytes = 0;
  int64_t request_threads = 8;
  int64_t disk_threads = 4;
  int64_t seal_threads = 2;
};

// Binds the fields of `config` to their names, comments and limits.
void BindAggregatorConfig(AggregatorConfig* config, Config* file);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_CONFIG_H_
