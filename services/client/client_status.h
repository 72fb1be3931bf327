// Converts internal errors to the library's Status.
#ifndef MUSTER_SERVICES_CLIENT_CLIENT_STATUS_H_
#define MUSTER_SERVICES_CLIENT_CLIENT_STATUS_H_

#include "absl/status/status.h"
#include "services/client/client.h"

namespace muster::client {

Status ToClientStatus(const absl::Status& status);

// Returns true if the source is unusable (changed, unreadable, too large), so that an error result
// must be delivered.
bool IsFaultOfSource(const absl::Status& status);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CLIENT_STATUS_H_
