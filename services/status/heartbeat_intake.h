// The handling of one sender's heartbeats, from a direct stream or through a relay.
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
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/statement_budget.h"
#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/sender.h"
#include "services/status/heartbeats/sender_streams.h"

namespace muster {

// The environment of streams of heartbeats, which they do not outlive.
struct HeartbeatParts {
  Registry& registry;
  HeartbeatListener& listener;
  // Called at least once for each pair with a sender. Must not wait.
  std::function<void(const v1::ResultKey&, const Sender&)> contact;
  const Clock& clock;
  // A stream without a heartbeat is ended after this time.
  absl::Duration first_within;
  // Returns whether the certificate of a caller is revoked.
  std::function<bool(const Caller&)> is_revoked;
  StatementBudget& statements;
};

// Not thread-safe.
class HeartbeatIntake {
 public:
  // Returns whether the sender may access the resource.
  using Authorize = absl::FunctionRef<absl::Status(const Resource&)>;

  explicit HeartbeatIntake(const HeartbeatParts& parts) : parts_(parts) {}

  // Handles a heartbeat of the sender with this identity. The first one registers the stream. One
  // out of order is ignored, and its goodbye is removed.
  absl::StatusOr<Registry::Answer> Handle(v1::StreamHeartbeatsRequest& heartbeat,
                                          const Identity& identity, Authorize authorize,
                                          const SenderConnection& connection);

  // Set by the first heartbeat.
  const std::optional<Registry::StreamRef>& stream_ref() const { return stream_ref_; }

 private:
  absl::Status Begin(const v1::StreamHeartbeatsRequest& heartbeat, const Identity& identity,
                     Authorize authorize, const SenderConnection& connection);
  absl::Status HandleActivity(const v1::Activity& activity, const Identity& identity,
                              Authorize authorize);

  const HeartbeatParts& parts_;
  std::string instance_;
  std::optional<Registry::StreamRef> stream_ref_;
  std::vector<size_t> contacts_;  // hashes of pairs that were passed to `contact`
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEAT_INTAKE_H_
