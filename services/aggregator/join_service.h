// muster.v1.JoinService: for machines without an identity, on a listener of its own.
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

namespace muster {

// Nobody authorises its callers: what they prove is all that counts. Thread-safe.
class JoinService : public v1::JoinService::CallbackService {
 public:
  JoinService(Executor& executor, Joining& joining, const Clock& clock, Addresses addresses,
              std::string fleet_ca_pem, std::string command_ca_pem, Metrics& metrics);

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const v1::JoinRequest* request,
                                 v1::NodeCertificate* response) override;
  grpc::ServerUnaryReactor* Return(grpc::CallbackServerContext* context,
                                   const v1::ReturnRequest* request,
                                   v1::NodeCertificate* response) override;

 private:
  // Runs `ask` on the executor and answers with what it gives.
  template <typename Ask>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                   v1::NodeCertificate* response, Ask ask);

  Executor& executor_;
  Joining& joining_;
  const Clock& clock_;
  const Addresses addresses_;
  const std::string fleet_ca_pem_;
  const std::string command_ca_pem_;
  Counter joined_;
  Counter refused_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_JOIN_SERVICE_H_
