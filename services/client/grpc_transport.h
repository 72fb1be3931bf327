// Delivery over ResultService.
#ifndef MUSTER_SERVICES_CLIENT_GRPC_TRANSPORT_H_
#define MUSTER_SERVICES_CLIENT_GRPC_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "services/client/result_transport.h"
#include "services/client/sender.h"

namespace muster::client {

// Sends small results by SubmitResult, others by OpenUpload and Upload. Tries the `targets`
// ("host:port", at least one) in turn, after errors that may not occur at another. They must be an
// aggregator or a relay of the sender's fleet.
std::unique_ptr<ResultTransport> MakeGrpcTransport(const std::vector<std::string>& targets,
                                                   std::shared_ptr<const Sender> sender);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_GRPC_TRANSPORT_H_
