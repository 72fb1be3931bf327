// Errors about a shared file, by its key.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_

#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/shares.pb.h"

namespace muster::errors {

absl::Status ShareNotFound(const v1::ShareKey& key);
absl::Status ShareReplaced(const v1::ShareKey& key);
absl::Status ShareSuperseded(const v1::ShareKey& key);
absl::Status ShareExpired(const v1::ShareKey& key);
absl::Status ShareNotYours(std::string_view caller, const v1::ShareKey& key);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_
