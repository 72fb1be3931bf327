// Where the fleet's services are reached from outside: configured, never guessed.
#ifndef MUSTER_SERVICES_AGGREGATOR_ADDRESSES_H_
#define MUSTER_SERVICES_AGGREGATOR_ADDRESSES_H_

#include <string>
#include <vector>

namespace muster {

struct Addresses {
  std::vector<std::string> aggregator_targets;  // "host:port"
  std::vector<std::string> status_targets;      // "host:port"
  std::vector<std::string> join_targets;        // "host:port"
  std::vector<std::string> gateway_urls;        // "https://host:port"
  std::vector<std::string> status_urls;         // "https://host:port/", with one slash at the end
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_ADDRESSES_H_
