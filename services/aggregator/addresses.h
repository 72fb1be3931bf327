// Where the fleet's services are reached from outside: configured, never guessed.
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
  std::vector<std::string> relay_targets;       // "host:port", of the relay at the centre
  std::vector<std::string> gateway_urls;        // "https://host:port"
  std::vector<std::string> status_urls;         // "https://host:port/", with one slash at the end
};

// What is not configured follows from the advertised hosts.
Addresses MakeAddresses(const AggregatorConfig& config);

// What the certificates of services name besides their URI.
std::vector<std::string> ServiceHosts(const AggregatorConfig& config);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_ADDRESSES_H_
