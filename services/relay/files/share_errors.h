// Errors about a shared file.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/shares.pb.h"

namespace muster {

// Returns whether an error rejects the file itself, so that another attempt cannot succeed. Returns
// false for errors about the transfer, the calling relay or its place in the topology. Returns
// false also for errors without a reason: the network caused them, or a server without shared
// files.
bool IsRefusal(const absl::Status& status);

// Bytes of a reported reason that are kept.
inline constexpr size_t kMaxShareReason = 2048;

// Checks what a child reports. INVALID_SHARE if the state is unknown, INVALID_NAME if the relay is
// no name.
absl::Status CheckReported(const v1::Share& share);

}  // namespace muster

namespace muster::errors {

absl::Status ShareNotFound(const v1::ShareKey& key);
absl::Status ShareReplaced(const v1::ShareKey& key);
absl::Status ShareSuperseded(const v1::ShareKey& key);
absl::Status ShareArriving(const v1::ShareKey& key);
absl::Status ShareExpired(const v1::ShareKey& key);
absl::Status ShareNotYours(std::string_view caller, const v1::ShareKey& key);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_
