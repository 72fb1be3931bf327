// The nodes whose outcome a finished job still waits for.
#ifndef MUSTER_SERVICES_RELAY_JOBS_ABANDONED_NODES_H_
#define MUSTER_SERVICES_RELAY_JOBS_ABANDONED_NODES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/hash/hash.h"

namespace muster {

// A set of names that takes 4 bytes for each, because it is in memory until the job is removed: it
// has hashes, which differ in each process. Immutable.
class AbandonedNodes {
 public:
  AbandonedNodes() = default;
  explicit AbandonedNodes(const std::vector<std::string>& names) {
    hashes_.reserve(names.size());
    for (const std::string& name : names) hashes_.push_back(HashOf(name));
    std::ranges::sort(hashes_);
  }

  // Returns false for all other names but one in 80,000, with 50,000 names in the set.
  bool MayContain(std::string_view name) const {
    return std::ranges::binary_search(hashes_, HashOf(name));
  }

 private:
  static uint32_t HashOf(std::string_view name) {
    return static_cast<uint32_t>(absl::HashOf(name));
  }

  std::vector<uint32_t> hashes_;  // sorted
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_ABANDONED_NODES_H_
