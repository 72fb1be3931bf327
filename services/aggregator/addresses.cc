#include "services/aggregator/addresses.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/base/text_values.h"

namespace muster {
namespace {

// The default port of the gateway's status listener.
constexpr uint16_t kStatusPort = 8002;
// The default port of the root relay.
constexpr uint16_t kRelayPort = 7445;
constexpr uint16_t kJobsPort = 7446;

void AddIfEmpty(const AggregatorConfig& config, uint16_t port, std::vector<std::string>& targets) {
  if (!targets.empty()) return;
  for (const std::string& host : config.advertise) {
    targets.push_back(HostPort{host, port}.ToString());
  }
}

}  // namespace

Addresses MakeAddresses(const AggregatorConfig& config) {
  Addresses addresses = {
      config.aggregator_targets, config.status_targets, config.join_targets, config.relay_targets,
      config.tunnel_targets,     config.jobs_targets,   config.gateway_urls, {}};
  for (const std::string& url : config.status_urls) {
    addresses.status_urls.push_back(
        absl::StrCat(absl::string_view(url).substr(0, url.find_last_not_of('/') + 1), "/"));
  }
  if (addresses.status_urls.empty()) {
    for (const std::string& host : config.advertise) {
      addresses.status_urls.push_back(
          absl::StrCat("https://", HostPort{host, kStatusPort}.ToString(), "/"));
    }
  }
  AddIfEmpty(config, config.listen.port, addresses.aggregator_targets);
  AddIfEmpty(config, config.join_listen.port, addresses.join_targets);
  AddIfEmpty(config, kRelayPort, addresses.relay_targets);
  AddIfEmpty(config, kJobsPort, addresses.jobs_targets);
  return addresses;
}

std::vector<std::string> JoinTargetsOf(const Addresses& addresses) {
  std::vector<std::string> targets = addresses.join_targets;
  targets.insert(targets.end(), addresses.tunnel_targets.begin(), addresses.tunnel_targets.end());
  return targets;
}

std::vector<std::string> ServiceHosts(const AggregatorConfig& config) {
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  for (const std::string& host : config.advertise) {
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  return hosts;
}

}  // namespace muster
