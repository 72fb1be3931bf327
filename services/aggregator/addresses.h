// The external addresses of the fleet's services, from the configuration.
#ifndef MUSTER_SERVICES_AGGREGATOR_ADDRESSES_H_
#define MUSTER_SERVICES_AGGREGATOR_ADDRESSES_H_

#include <string>
#include <vector>

#include "services/aggregator/config.h"

namespace muster {

struct Addresses {
  std::vector<std::string> aggregator_targets;  // "host:port"
  std::vector<std::string> status_targets;      // "host:port"
  std::vector<std::string> join_targets;        // "host:port"
  std::vector<std::string> relay_targets;       // "host:port", of the root relay
  std::vector<std::string> tunnel_targets;      // "wss://host:port", of gateways
  std::vector<std::string> jobs_targets;        // "host:port"
  std::vector<std::string> gateway_urls;        // "https://host:port"
  std::vector<std::string> status_urls;         // "https://host:port/", with one slash at the end
};

// Returns the configured addresses; missing ones are derived from the advertised hosts.
Addresses MakeAddresses(const AggregatorConfig& config);

// Returns the addresses in join tokens: those of the join listener, then the tunnels to it.
std::vector<std::string> JoinTargetsOf(const Addresses& addresses);

// Returns the hosts in the certificates of services.
std::vector<std::string> ServiceHosts(const AggregatorConfig& config);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_ADDRESSES_H_
