// From the errors of the inside to what callers of the library see.
#ifndef MUSTER_SERVICES_CLIENT_CLIENT_STATUS_H_
#define MUSTER_SERVICES_CLIENT_CLIENT_STATUS_H_

#include "absl/status/status.h"
#include "services/client/client.h"

namespace muster::client {

Status ToClientStatus(const absl::Status& status);

// The result itself cannot be used (changed, unreadable, too large): the fleet should be told.
bool IsFaultOfSource(const absl::Status& status);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CLIENT_STATUS_H_
