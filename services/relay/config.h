// The relay's configuration file.
#ifndef MUSTER_SERVICES_RELAY_CONFIG_H_
#define MUSTER_SERVICES_RELAY_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "services/common/base/config.h"
#include "services/common/base/text_values.h"
#include "services/common/service/service_main.h"
#include "services/relay/proxy/forwarding.h"

namespace muster {

struct JobsConfig {
  int64_t max_running = 1'000;
  uint64_t max_output = uint64_t{256} << 20;
  absl::Duration retention = absl::Hours(24 * 7);
};

struct SharesConfig {
  std::string folder;  // empty: shares/ in the state folder
  uint64_t quota = uint64_t{10} << 30;
  int64_t max_files = 10'000;
  uint64_t max_size = uint64_t{4} << 30;
};

struct RelayConfig {
  std::string state_folder;  // tls/ and all durable state
  HostPort listen = {"127.0.0.1", 7445};
  HostPort join_listen = {"", 0};  // machines do not join at this relay
  std::vector<HostPort> parents;
  std::vector<HostPort> aggregator_targets = {{"127.0.0.1", 7440}};
  std::vector<HostPort> status_targets = {{"127.0.0.1", 7441}};
  std::vector<HostPort> jobs_targets = {{"127.0.0.1", 7446}};
  std::vector<std::string> advertise;
  int64_t health_port = 0;
  int64_t inspection_port = 0;
  std::string addresses_file;
  LogConfig log;
  absl::Duration drain = absl::Seconds(10);
  absl::Duration interval = absl::Seconds(15);
  int64_t max_nodes = 200'000;
  int64_t request_threads = 4;
  JobsConfig jobs;
  SharesConfig shares;
  ForwardingConfig forwarding;
};

// Binds the fields of `config` to their names, comments and limits.
void BindRelayConfig(RelayConfig* config, Config* file);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_CONFIG_H_
