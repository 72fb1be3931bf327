// The common part of both upstreams: the statements of descendants, and the listeners.
#ifndef MUSTER_SERVICES_RELAY_UPSTREAM_UPSTREAM_BASE_H_
#define MUSTER_SERVICES_RELAY_UPSTREAM_UPSTREAM_BASE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "services/common/base/mutex.h"
#include "services/relay/topology/topology_view.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// Thread-safe.
class UpstreamBase : public Upstream {
 public:
  explicit UpstreamBase(const TopologyView& topology) : topology_(topology) {}

  std::shared_ptr<void> OnChange(std::function<void()> changed) override;
  absl::StatusOr<std::string> StatementFor(const Caller& caller) override;
  absl::Status CheckChildRelay(const Caller& caller) override;
  absl::StatusOr<std::string> StatementOfChildRelay(const Caller& caller) override;

 protected:
  // Calls the listeners. The caller holds no lock.
  void NotifyListeners();

 private:
  struct Listeners {
    Mutex mutex;  // held during calls, so that a removed listener is not called
    uint64_t next ABSL_GUARDED_BY(mutex) = 0;
    std::map<uint64_t, std::function<void()>> callbacks ABSL_GUARDED_BY(mutex);
  };

  const TopologyView& topology_;
  const std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_UPSTREAM_UPSTREAM_BASE_H_
