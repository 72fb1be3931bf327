// What becomes of one sender's beats, whatever way they come by.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEAT_INTAKE_H_
#define MUSTER_SERVICES_STATUS_HEARTBEAT_INTAKE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/heartbeats.pb.h"
#include "services/common/base/clock.h"
#include "services/common/identity/policy.h"
#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

// What streams of heartbeats work with. All of it outlives them.
struct HeartbeatParts {
  Registry& registry;
  HeartbeatListener& listener;
  // Somebody came for this pair; does not wait. More than once is no harm.
  std::function<void(const v1::ResultKey&, const Sender&)> contact;
  const Clock& clock;
  // A stream is ended if its first beat has not come by then.
  absl::Duration first_within;
  // Whether a caller is not to be trusted any more.
  std::function<bool(const Caller&)> is_revoked;
};

// Not thread-safe: beats come one after another.
class HeartbeatIntake {
 public:
  // Whether the sender may touch this.
  using Authorize = absl::FunctionRef<absl::Status(const Resource&)>;

  // How the sender is reached and seen.
  struct Way {
    std::weak_ptr<SenderLink> line;
    TcpPeer peer;
    const RelayState* relay = nullptr;
  };

  explicit HeartbeatIntake(const HeartbeatParts& parts) : parts_(parts) {}

  // One beat of the sender with this identity. The first one opens its place in the registry; one
  // that is out of order counts for nothing, and its goodbye is taken out.
  absl::StatusOr<Registry::Answer> Take(v1::StreamHeartbeatsRequest& beat, const Identity& identity,
                                        Authorize authorize, const Way& way);

  // Once a beat was taken.
  const std::optional<Registry::Seat>& seat() const { return seat_; }

 private:
  absl::Status Begin(const v1::StreamHeartbeatsRequest& beat, const Identity& identity,
                     Authorize authorize, const Way& way);
  absl::Status TakeActivity(const v1::Activity& activity, const Identity& identity,
                            Authorize authorize);

  const HeartbeatParts& parts_;
  std::string instance_;
  std::optional<Registry::Seat> seat_;
  std::vector<size_t> contacts_;  // hashes of pairs that are known to have somebody
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEAT_INTAKE_H_
