// The configuration of the client library for the collections of a node.
#ifndef MUSTER_SERVICES_AGENT_COLLECTION_CLIENT_CONFIGS_H_
#define MUSTER_SERVICES_AGENT_COLLECTION_CLIENT_CONFIGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "services/agent/kept_results.h"
#include "services/client/client.h"
#include "services/common/base/mutex.h"

namespace muster {

// Thread-safe.
class ClientConfigs {
 public:
  struct Options {
    std::string node;
    std::string identity_folder;             // as in CollectionOptions, like the next
    std::vector<std::string> relay_targets;  // of other relays
    std::string state_folder;                // of the client library
  };

  explicit ClientConfigs(Options options) : options_(std::move(options)) {}

  // Sets the relay of the newest attachment or offer, which is tried first.
  void SetTarget(const std::string& target) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the configuration for a result, with the present certificate of the node. The deadline
  // may be infinite.
  client::Config ConfigOf(const ResultName& result, absl::Time deadline) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Options options_;
  mutable Mutex mutex_;
  std::string target_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_COLLECTION_CLIENT_CONFIGS_H_
