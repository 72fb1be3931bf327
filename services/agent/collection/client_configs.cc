#include "services/agent/collection/client_configs.h"

#include <string_view>

#include "absl/time/clock.h"
#include "services/common/base/secret_file.h"
#include "services/common/rpc/channel_target.h"

namespace muster {
namespace {

void ReadInto(const std::string& path, std::string* text) {
  auto read = ReadFileBounded(path, kMaxSecretFile);
  if (read.ok()) *text = *std::move(read);
}

}  // namespace

void ClientConfigs::SetTarget(const std::string& target) {
  MutexLock lock(mutex_);
  target_ = target;
}

client::Config ClientConfigs::ConfigOf(const ResultName& result, absl::Time deadline) const {
  client::Config config;
  {
    MutexLock lock(mutex_);
    config.grpc_targets = {target_};
  }
  const bool tunnel = IsTunnel(std::string_view(config.grpc_targets[0]));
  for (const std::string& other : options_.relay_targets) {
    // Only the attachment decides that a tunnel is needed.
    if (IsTunnel(std::string_view(other)) && !tunnel) continue;
    if (other != config.grpc_targets[0]) config.grpc_targets.push_back(other);
  }
  config.status_targets = config.grpc_targets;
  config.run = result.run;
  config.plugin = result.plugin;
  config.node = options_.node;
  config.identity_folder = options_.identity_folder;
  // The checks before the work use these copies.
  ReadInto(options_.identity_folder + "/ca.pem", &config.fleet_ca_cert);
  ReadInto(options_.identity_folder + "/cert.pem", &config.client_cert);
  ReadInto(options_.identity_folder + "/key.pem", &config.client_key);
  config.state_dir = options_.state_folder;
  if (deadline != absl::InfiniteFuture()) config.deadline = absl::ToChronoTime(deadline);
  return config;
}

}  // namespace muster
