// muster.v1.JoinService: for machines without an identity, on a listener of its own, and for those
// that reach only a relay.
#ifndef MUSTER_SERVICES_AGGREGATOR_JOIN_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_JOIN_SERVICE_H_

#include <string>
#include <utility>

#include "muster/v1/join.grpc.pb.h"
#include "services/aggregator/addresses.h"
#include "services/aggregator/nodes/joining.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/metrics.h"
#include "services/common/rpc/call.h"
#include "services/common/store/state_store.h"

namespace muster {

// What is answered, whichever way the question came. Thread-safe.
class JoinHandler {
 public:
  // The authorities in PEM are what the answer names.
  JoinHandler(Joining& joining, StateStore& store, const Clock& clock, Addresses addresses,
              std::string fleet_ca_pem, std::string command_ca_pem, Metrics& metrics);

  // `peer`: who asks, for the log.
  absl::Status Join(const std::string& peer, const v1::JoinRequest& request,
                    v1::NodeCertificate* response);
  absl::Status Rejoin(const std::string& peer, const v1::RejoinRequest& request,
                      v1::NodeCertificate* response);

 private:
  absl::Status Answer(const std::string& peer, const absl::StatusOr<JoinedMember>& member,
                      v1::NodeCertificate* response);

  Joining& joining_;
  StateStore& store_;
  const Clock& clock_;
  const Addresses addresses_;
  const std::string fleet_ca_pem_;
  const std::string command_ca_pem_;
  Counter joined_;
  Counter refused_;
};

// On the listener that asks for no certificate: nobody authorises its callers, what they prove is
// all that counts. Thread-safe.
class JoinService : public v1::JoinService::CallbackService {
 public:
  JoinService(Executor& executor, JoinHandler& answers) : executor_(executor), answers_(answers) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const v1::JoinRequest* request,
                                 v1::NodeCertificate* response) override;
  grpc::ServerUnaryReactor* Rejoin(grpc::CallbackServerContext* context,
                                   const v1::RejoinRequest* request,
                                   v1::NodeCertificate* response) override;

 private:
  // Runs `ask` on the executor.
  template <typename Ask>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, Ask ask);

  Executor& executor_;
  JoinHandler& answers_;
};

// Among the services of the fleet: for relays, which forward what machines below them ask.
// Thread-safe.
class RelayedJoinService : public v1::JoinService::CallbackService {
 public:
  RelayedJoinService(const RpcRuntime& runtime, JoinHandler& answers)
      : runtime_(runtime), answers_(answers) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const v1::JoinRequest* request,
                                 v1::NodeCertificate* response) override;
  grpc::ServerUnaryReactor* Rejoin(grpc::CallbackServerContext* context,
                                   const v1::RejoinRequest* request,
                                   v1::NodeCertificate* response) override;

 private:
  const RpcRuntime runtime_;
  JoinHandler& answers_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_JOIN_SERVICE_H_
