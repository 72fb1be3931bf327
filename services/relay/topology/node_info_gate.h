// The information of a child about itself (NodeInfo of attachment.proto), checked and held back.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_NODE_INFO_GATE_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_NODE_INFO_GATE_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace muster {

// The most bytes, serialised, and the most adapters.
inline constexpr size_t kMaxNodeInfo = 1024;
inline constexpr int kMaxAdapters = 4;

// INVALID_ARGUMENT (INVALID_ATTACHMENT).
absl::Status CheckNodeInfo(const v1::NodeInfo& info);

// Each change costs the parents of this relay a signature to verify. So a child that sends without
// end causes one every ten seconds. Thread-safe.
class NodeInfoGate {
 public:
  // `clock` outlives it.
  explicit NodeInfoGate(const Clock& clock) : clock_(clock) {}

  // Keeps the last information. INVALID_ARGUMENT (INVALID_ATTACHMENT).
  absl::Status Receive(v1::NodeInfo info) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns what was received since the last call, once it is due; null otherwise. To be called
  // every few seconds.
  std::shared_ptr<const v1::NodeInfo> DequeueDue() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Clock& clock_;
  Mutex mutex_;
  std::shared_ptr<const v1::NodeInfo> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_ ABSL_GUARDED_BY(mutex_);  // monotonic
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_NODE_INFO_GATE_H_
