// Errors about a shared file.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_

#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/shares.pb.h"

namespace muster {

// Returns whether an error is a verdict on the file, so that another try cannot succeed. Errors
// about the transfer, the calling relay or its place in the topology are none, and neither are
// those without a reason: they come from the network, or from a server without shared files.
bool IsRefusal(const absl::Status& status);

}  // namespace muster

namespace muster::errors {

absl::Status ShareNotFound(const v1::ShareKey& key);
absl::Status ShareReplaced(const v1::ShareKey& key);
absl::Status ShareSuperseded(const v1::ShareKey& key);
absl::Status ShareExpired(const v1::ShareKey& key);
absl::Status ShareNotYours(std::string_view caller, const v1::ShareKey& key);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_
