// Validation of heartbeats.
#ifndef MUSTER_SERVICES_COMMON_HEARTBEAT_HEARTBEAT_CHECK_H_
#define MUSTER_SERVICES_COMMON_HEARTBEAT_HEARTBEAT_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/heartbeats.pb.h"
#include "services/common/identity/identity.h"

namespace muster {

// The most activities in a heartbeat.
inline constexpr int kMaxActivities = 1000;

// Returns the node of a stream: the one in its first message, or in the certificate if the message
// names none. Fails with INVALID_HEARTBEAT if the message has neither a node nor an instance.
absl::StatusOr<std::string> NodeOf(const Identity& identity,
                                   const v1::StreamHeartbeatsRequest& first);

// Fails with INVALID_HEARTBEAT if a number is out of range, if there are too many activities, or if
// node or instance differ from those at the begin of the stream.
absl::Status CheckHeartbeat(const v1::StreamHeartbeatsRequest& heartbeat, const std::string& node,
                            const std::string& instance);

// Completes `key` with the names in the certificate and the sender's node. Fails with
// INVALID_HEARTBEAT if the pair is for another node or remains incomplete.
absl::StatusOr<v1::ResultKey> PairOf(const Identity& identity, const std::string& node,
                                     const v1::ResultKey& key);

// Cuts the texts of an activity to their limits and makes them printable, but for those of its
// progress, which are only cut (CutProgress). An unknown phase means "unchanged".
void CleanActivity(v1::Activity* activity);

// Returns at most `max` characters of `text`; replaces bytes that are not printable UTF-8 by
// spaces.
std::string CleanText(const std::string& text, size_t max);

// Returns the sender's clock minus `now`, at most 100 years; zero if the time is missing.
absl::Duration ClockSkew(const v1::StreamHeartbeatsRequest& heartbeat, absl::Time now);

// Returns zero if the uptime is missing.
absl::Duration UptimeOf(const v1::StreamHeartbeatsRequest& heartbeat);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_HEARTBEAT_HEARTBEAT_CHECK_H_
