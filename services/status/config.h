// The status service's configuration file.
#ifndef MUSTER_SERVICES_STATUS_CONFIG_H_
#define MUSTER_SERVICES_STATUS_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "services/common/base/config.h"
#include "services/common/base/text_values.h"
#include "services/common/service/service_main.h"

namespace muster {

struct HeartbeatConfig {
  absl::Duration interval = absl::Seconds(10);
  int64_t target_rate = 5000;
  absl::Duration lost_after = absl::Minutes(3);
  absl::Duration grace = absl::Seconds(90);
  absl::Duration doubt_limit = absl::Minutes(10);
  int64_t max_senders = 500'000;
  absl::Duration first_within = absl::Seconds(10);
};

struct StatusConfig {
  std::string state_folder;  // tls/, status.db
  HostPort listen = {"127.0.0.1", 7441};
  std::vector<HostPort> aggregator_targets = {{"127.0.0.1", 7440}};
  int64_t health_port = 0;
  int64_t inspection_port = 0;
  std::string addresses_file;
  LogConfig log;
  absl::Duration drain = absl::Seconds(10);
  int64_t request_threads = 4;
  HeartbeatConfig heartbeats;
};

// Binds the fields of `config` to their names, comments and limits.
void BindStatusConfig(StatusConfig* config, Config* file);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_CONFIG_H_
