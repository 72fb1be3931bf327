// The connection of a relay towards the aggregator.
#ifndef MUSTER_SERVICES_RELAY_UPSTREAM_UPSTREAM_H_
#define MUSTER_SERVICES_RELAY_UPSTREAM_UPSTREAM_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/forwarding.h"

namespace grpc {
class Channel;
}

namespace muster {

// The maximum number of ended runs in a welcome (attachment.proto).
inline constexpr size_t kMaxEndedRuns = 1'000;

// The root relay is connected to the aggregator, the status service and the jobs service, any other
// relay to its parent. Thread-safe; the methods do not block. Outlives its users.
class Upstream {
 public:
  virtual ~Upstream() = default;

  // Return the channel to the server of these services; null without a parent. The channel changes
  // with the parent, so get it for each call. An old channel stays usable while it is referenced.
  virtual std::shared_ptr<grpc::Channel> Results() = 0;  // ResultService, RunService
  virtual std::shared_ptr<grpc::Channel> Status() = 0;   // HeartbeatService, StatusService
  virtual std::shared_ptr<grpc::Channel> Joining() = 0;  // JoinService, over mutual TLS
  virtual std::shared_ptr<grpc::Channel> Jobs() = 0;     // the services of the jobs service

  // Returns the error of a call whose channel of Jobs() has no connection: JOBS_UNREACHABLE at the
  // root relay, else RELAY_CUT_OFF. The other channels do not depend on the jobs service.
  virtual absl::Status JobsUnreachable() const = 0;

  // Returns whether all connections up to the aggregator work, as far as this relay knows.
  virtual bool connected() const = 0;

  // Returns the runs that ended lately or before their deadline, as far as this relay knows: a
  // child that was disconnected may still collect for them. At most kMaxEndedRuns.
  virtual std::vector<std::string> ended_runs() const { return {}; }

  // Returns OK if children may attach; RELAY_REVOKED if this relay was revoked, so that they have
  // to choose another one.
  virtual absl::Status MayAttach() const { return absl::OkStatus(); }

  // Calls `changed` whenever connected() changes, a channel is replaced, or ended_runs() lacks a
  // run of an earlier list, on any thread, until the handle is destroyed; the destruction waits for
  // a running call. `changed` must not block.
  [[nodiscard]] virtual std::shared_ptr<void> OnChange(std::function<void()> changed) = 0;

  // Returns the serialised AttachStatement that permits this relay to act for `caller`.
  // PERMISSION_DENIED (NOT_ATTACHED) if `caller` is no node or not attached to this relay; or, if a
  // child relay forwards the call (`caller.via`), no descendant of that child.
  virtual absl::StatusOr<std::string> StatementFor(const Caller& caller) = 0;

  // Returns OK if `caller` is a relay that is attached to this one, else PERMISSION_DENIED
  // (NOT_ATTACHED).
  virtual absl::Status CheckChildRelay(const Caller& caller) = 0;

  // Returns the serialised AttachStatement of `caller`, a relay that is attached to this one;
  // PERMISSION_DENIED (NOT_ATTACHED) for others.
  virtual absl::StatusOr<std::string> StatementOfChildRelay(const Caller& caller) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_UPSTREAM_UPSTREAM_H_
