// Generated from shares.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_SHARES_H_
#define MUSTER_SERVICES_COMMON_ERRORS_SHARES_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Shared files.
namespace muster::errors {

// INTERNAL, ENDLESS_SHARE_LIST.
absl::Status EndlessShareList(std::string_view why);
// NOT_FOUND, SHARE_NOT_FOUND.
absl::Status ShareNotFound(std::string_view file);
// NOT_FOUND, SHARE_NOT_FOUND.
absl::Status ShareNotReady();
// FAILED_PRECONDITION, SHARE_REPLACED.
absl::Status ShareReplaced(std::string_view file);
// FAILED_PRECONDITION, SHARE_SUPERSEDED.
absl::Status ShareSuperseded(std::string_view file);
// UNAVAILABLE, SHARE_ARRIVING.
absl::Status ShareArriving(std::string_view file);
// FAILED_PRECONDITION, SHARE_EXPIRED.
absl::Status ShareExpired(std::string_view file);
// RESOURCE_EXHAUSTED, SHARE_QUOTA.
absl::Status ShareQuota(std::string_view limit);
// INVALID_ARGUMENT, SHARE_TOO_LARGE.
absl::Status ShareTooLarge(int64_t size, int64_t limit);
// PERMISSION_DENIED, NOT_YOURS.
absl::Status ShareNotYours(std::string_view caller, std::string_view file);
// UNAUTHENTICATED, INVALID_SIGNATURE.
absl::Status SignedTooLongAgo();
// NOT_FOUND, TARGET_UNKNOWN.
absl::Status TargetUnknown(std::string_view target);
// NOT_FOUND, TARGET_UNKNOWN.
absl::Status TargetNeverJoined(std::string_view target);
// NOT_FOUND, TARGET_UNKNOWN.
absl::Status TargetRevoked(std::string_view target);
// NOT_FOUND, TARGET_UNKNOWN.
absl::Status TargetIsRelay(std::string_view target);
// UNAVAILABLE, NOT_RECORDED.
absl::Status RemovalNotRecorded(std::string_view why);
// FAILED_PRECONDITION, SHARE_REFUSED.
absl::Status ShareRefusedAt(std::string_view file, std::string_view relay, std::string_view why);
// FAILED_PRECONDITION, SHARE_EXPIRED.
absl::Status ShareExpiredAt(std::string_view file, std::string_view relay, std::string_view why);
// FAILED_PRECONDITION, SHARE_REMOVED.
absl::Status ShareRemovedAt(std::string_view file, std::string_view relay, std::string_view why);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_SHARES_H_
