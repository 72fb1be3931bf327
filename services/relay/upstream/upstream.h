// The way to the centre, as those see it who forward: the tree knows it (services/relay/topology).
#ifndef MUSTER_SERVICES_RELAY_UPSTREAM_UPSTREAM_H_
#define MUSTER_SERVICES_RELAY_UPSTREAM_UPSTREAM_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/identity/policy.h"
#include "services/common/rpc/forwarding.h"

namespace grpc {
class Channel;
}

namespace muster {

// Thread-safe; nothing of it waits. It outlives whoever forwards.
class Upstream {
 public:
  virtual ~Upstream() = default;

  // Channels to whoever serves these above: the parent for all of them, or aggregator and status
  // at the root. They change when the parent does: ask for each call. Null when there is no parent
  // now. A channel that was given stays usable until it is let go of.
  virtual std::shared_ptr<grpc::Channel> Results() = 0;  // ResultService, RunService
  virtual std::shared_ptr<grpc::Channel> Status() = 0;   // HeartbeatService, StatusService
  virtual std::shared_ptr<grpc::Channel> Joining() = 0;  // JoinService, over mutual TLS

  // Whether all of the way to the centre stands, as far as is known here.
  virtual bool connected() const = 0;

  // Calls `changed` whenever connected() changes or a channel is replaced, on any thread, without a
  // lock, until the handle is gone; that waits for a call under upstream. `changed` must not wait.
  [[nodiscard]] virtual std::shared_ptr<void> OnChange(std::function<void()> changed) = 0;

  // The serialised AttachStatement with which this relay may speak for `caller` to who is above it.
  // PERMISSION_DENIED (NOT_ATTACHED) if `caller` is no node; if it does not hang here; or, where a
  // child relay forwards it (`caller.via`), if it does not hang below that child.
  virtual absl::StatusOr<std::string> StatementFor(const Caller& caller) = 0;

  // OK if `caller` is a relay that hangs directly below this one, else PERMISSION_DENIED
  // (NOT_ATTACHED).
  virtual absl::Status CheckChildRelay(const Caller& caller) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_UPSTREAM_UPSTREAM_H_
