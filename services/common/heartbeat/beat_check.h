// What a heartbeat may say, before anybody believes it.
#ifndef MUSTER_SERVICES_COMMON_HEARTBEAT_BEAT_CHECK_H_
#define MUSTER_SERVICES_COMMON_HEARTBEAT_BEAT_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/heartbeats.pb.h"
#include "services/common/identity/identity.h"

namespace muster {

// The node that a stream beats for: what its first message says, or what the certificate does where
// that is left out. INVALID_HEARTBEAT for a message that names none or no instance.
absl::StatusOr<std::string> NodeOf(const Identity& identity,
                                   const v1::StreamHeartbeatsRequest& first);

// INVALID_HEARTBEAT: numbers out of their range, too many activities, another node or instance than
// the stream began with.
absl::Status CheckBeat(const v1::StreamHeartbeatsRequest& beat, const std::string& node,
                       const std::string& instance);

// The pair that `key` means: what it leaves out is what the certificate names, and the sender's
// node. INVALID_HEARTBEAT if it lies on another node than the sender, or is incomplete.
absl::StatusOr<v1::ResultKey> PairOf(const Identity& identity, const std::string& node,
                                     const v1::ResultKey& key);

// Cuts the texts of an activity to their limits and makes them printable; a phase that we do not
// know is "as before".
void CleanActivity(v1::Activity* activity);

// At most `max` characters of `text`; what is not printable UTF-8 becomes a space.
std::string CleanText(const std::string& text, size_t max);

// Their clock minus ours, within 100 years; zero if they did not say.
absl::Duration ClockSkew(const v1::StreamHeartbeatsRequest& beat, absl::Time now);

// Zero if they did not say.
absl::Duration UptimeOf(const v1::StreamHeartbeatsRequest& beat);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_HEARTBEAT_BEAT_CHECK_H_
