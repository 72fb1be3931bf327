// muster.v1.JoinService: for machines without an identity, on a separate listener, and for machines
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

// Answers the requests of both services. Thread-safe.
class JoinHandler {
 public:
  // Responses contain the CAs in PEM.
  JoinHandler(Joining& joining, StateStore& store, const Clock& clock, Addresses addresses,
              std::string fleet_ca_pem, std::string command_ca_pem, Metrics& metrics);

  // `peer`: the caller, for the log.
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

// On the listener without client certificates: callers are not authorised, only their proofs count.
// Thread-safe.
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

// On the listener of the fleet: for relays, which forward requests of machines downstream.
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
