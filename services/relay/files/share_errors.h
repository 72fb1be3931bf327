// What relays answer about shared files: their part of the catalogue (services/common/errors.h).
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/shares.pb.h"

namespace muster::errors {

absl::Status ShareNotFound(const v1::ShareKey& key);
absl::Status ShareReplaced(const v1::ShareKey& key);
absl::Status ShareSuperseded(const v1::ShareKey& key);
absl::Status ShareExpired(const v1::ShareKey& key);
absl::Status ShareQuota(std::string_view limit);
absl::Status ShareTooLarge(int64_t size, int64_t limit);
absl::Status ShareNotYours(std::string_view caller, const v1::ShareKey& key);
absl::Status SignedTooLongAgo();
absl::Status TargetUnknown(std::string_view target);
absl::Status TargetNeverJoined(std::string_view target);
absl::Status RelayNotInTree(std::string_view relay);
absl::Status RelayNotReached(std::string_view relay, std::string_view why);
absl::Status RelayFailed(std::string_view relay, std::string_view fault);
absl::Status RemovalNotRecorded(std::string_view why);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_ERRORS_H_
