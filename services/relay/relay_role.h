// The differences between the root relay and all other relays.
#ifndef MUSTER_SERVICES_RELAY_RELAY_ROLE_H_
#define MUSTER_SERVICES_RELAY_RELAY_ROLE_H_

#include <grpcpp/channel.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/recorded_operators.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/service/service_threads.h"
#include "services/relay/config.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/job_board.h"
#include "services/relay/jobs/record_sink.h"
#include "services/relay/relay_identity.h"
#include "services/relay/topology/topology.h"
#include "services/relay/trust.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// The parts that a role uses; they outlive the role.
struct RoleParts {
  const RelayConfig& config;
  RelayIdentity& self;
  Topology& topology;
  CommandDispatcher& dispatcher;
  Trust& trust;
  RecordedOperators& operators;
  VerifiedChains& chains;
  const Clock& clock;
  ServiceThreads& threads;
};

// Thread-safe. A root relay is connected to the aggregator and the status service, and owns the
// jobs (root_role.h). Any other relay is attached to a parent (child_role.h).
class RelayRole {
 public:
  virtual ~RelayRole() = default;

  virtual Upstream& upstream() = 0;
  // Receives the records of jobs from the children.
  virtual RecordSink& records() = 0;

  // Returns why the relay cannot serve yet; OK if it can.
  virtual absl::Status Ready() const = 0;

  // Nodes and relays became reachable, or by another route.
  virtual void OnReachable(const std::vector<std::string>& names) = 0;
  // A descendant relay was attached or detached.
  virtual void OnRelayChanged(const std::string& relay, bool attached) = 0;

  // To be called several times a second.
  virtual void Tick() = 0;

  // Disconnects from a parent, so that its messages are not delivered any more. Called once, at the
  // end, before the receivers of the messages are destroyed.
  virtual void Disconnect() = 0;

  // For the root relay; null or empty elsewhere, and before the aggregator has sent it.
  virtual JobBoard* job_board() = 0;
  virtual std::shared_ptr<grpc::Channel> aggregator() const = 0;
  virtual std::optional<Certificate> command_ca() const = 0;

  // The number of damaged results that nodes are asked for; 0 but for the root relay.
  virtual size_t redelivery_requests() const { return 0; }

  // The channel to the parent; null for the root relay and without a parent.
  virtual std::shared_ptr<grpc::Channel> parent() = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_RELAY_ROLE_H_
