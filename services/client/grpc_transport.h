// Delivery over ResultService.
#ifndef MUSTER_SERVICES_CLIENT_GRPC_TRANSPORT_H_
#define MUSTER_SERVICES_CLIENT_GRPC_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "services/client/result_transport.h"
#include "services/client/sender_identity.h"

namespace muster::client {

// Small results by SubmitResult, others by OpenUpload and Upload. `targets` ("host:port", at least
// one) are tried in turn: after an error that another one may not have. `fleet_ca_pem` is the root
// to which the servers must lead; they must be an aggregator or a relay of the sender's fleet.
std::unique_ptr<ResultTransport> MakeGrpcTransport(const std::vector<std::string>& targets,
                                                   std::string fleet_ca_pem,
                                                   std::string client_key_pem,
                                                   SenderIdentity identity);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_GRPC_TRANSPORT_H_
