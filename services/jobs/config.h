// The configuration file of the jobs service.
#ifndef MUSTER_SERVICES_JOBS_CONFIG_H_
#define MUSTER_SERVICES_JOBS_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/config.h"
#include "services/common/base/text_values.h"
#include "services/common/service/service_main.h"
#include "services/jobs/vault/vault_options.h"

namespace muster {

struct JobsServiceConfig {
  std::string state_folder;  // tls/, jobs.db, store.key, contents/, workspaces/
  HostPort listen = {"127.0.0.1", 7446};
  std::vector<HostPort> aggregator_targets = {{"127.0.0.1", 7440}};
  std::vector<HostPort> relay_targets = {{"127.0.0.1", 7445}};
  int64_t health_port = 0;
  int64_t inspection_port = 0;
  std::string addresses_file;
  LogConfig log;
  absl::Duration drain = absl::Seconds(10);
  int64_t request_threads = 4;
  uint64_t disk_reserve = uint64_t{4} << 20;
  uint64_t content_quota = uint64_t{20} << 30;
  int64_t max_contents = 100'000;
  VaultOptions vault;
  uint64_t workspace_quota = uint64_t{20} << 30;
};

// Binds the fields of `config` to their names, comments and limits.
void BindJobsServiceConfig(JobsServiceConfig* config, Config* file);

// Checks that the files of the login to Vault are named. INVALID_ARGUMENT (INVALID_CONFIG).
absl::Status CheckJobsServiceConfig(const JobsServiceConfig& config);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_CONFIG_H_
