// Checks that the fleet permits the delivery.
#ifndef MUSTER_SERVICES_AGENT_PREFLIGHT_AUTHORISATION_H_
#define MUSTER_SERVICES_AGENT_PREFLIGHT_AUTHORISATION_H_

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/types.pb.h"
#include "services/client/client.h"

namespace muster {

// Asks `target` ("host:port" of gRPC) for the outcome of the pair, which requires the same
// permission as its delivery. Returns the service's errors. Takes at most 10 s.
absl::StatusOr<v1::Outcome> AskService(const client::Config& config, const std::string& target,
                                       const std::stop_token& stop);

// Asks the listener of the run for legacy clients. A listener that does not support the question is
// assumed to agree. Returns the errors of HttpsTransport. Takes at most 10 s.
absl::Status AskListener(const client::Config& config, const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PREFLIGHT_AUTHORISATION_H_
