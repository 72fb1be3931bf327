// Generated from heartbeats.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_HEARTBEATS_H_
#define MUSTER_SERVICES_COMMON_ERRORS_HEARTBEATS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

// Status and heartbeats.
namespace muster::errors {

// INVALID_ARGUMENT, INVALID_PROGRESS.
absl::Status InvalidProgress(std::string_view why);
// UNAVAILABLE, STATUS_NOT_READY.
absl::Status StatusNotReady();
// UNAVAILABLE, PAIRS_NOT_LOADED.
absl::Status PairsNotLoaded(std::string_view run, std::string_view why);
// UNAVAILABLE, STATUS_STOPPING.
absl::Status StatusStopping();
// INVALID_ARGUMENT, INVALID_REQUEST.
absl::Status InvalidStatusRequest();
// INVALID_ARGUMENT, INVALID_HEARTBEAT.
absl::Status InvalidHeartbeat(std::string_view why);
// DEADLINE_EXCEEDED, NO_FIRST_HEARTBEAT.
absl::Status NoFirstHeartbeat(absl::Duration within);
// CANCELLED, HEARTBEAT_STREAM_REPLACED.
absl::Status HeartbeatStreamReplaced();
// ABORTED, DUPLICATE_AGENT.
absl::Status DuplicateAgent(std::string_view node);
// RESOURCE_EXHAUSTED, TOO_MANY_SENDERS.
absl::Status TooManySenders(int64_t limit);
// INVALID_ARGUMENT, INVALID_CURSOR.
absl::Status InvalidCursor();
// NOT_FOUND, NODE_NOT_FOUND.
absl::Status NodeNotFound(std::string_view node);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_HEARTBEATS_H_
