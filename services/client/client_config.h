// What a client's configuration has to have.
#ifndef MUSTER_SERVICES_CLIENT_CLIENT_CONFIG_H_
#define MUSTER_SERVICES_CLIENT_CLIENT_CONFIG_H_

#include "absl/status/status.h"
#include "services/client/client.h"

namespace muster::client {

// Whether it names a pair and a place to deliver to: INVALID_ARGUMENT (CONFIG_INVALID).
absl::Status CheckNames(const Config& config);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CLIENT_CONFIG_H_
