// Validation of a client's configuration.
#ifndef MUSTER_SERVICES_CLIENT_CLIENT_CONFIG_H_
#define MUSTER_SERVICES_CLIENT_CLIENT_CONFIG_H_

#include "absl/status/status.h"
#include "services/client/client.h"

namespace muster::client {

// Checks that the configuration names a pair and a service. Fails with INVALID_ARGUMENT
// (INVALID_CONFIG).
absl::Status CheckNames(const Config& config);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CLIENT_CONFIG_H_
