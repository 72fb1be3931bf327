// Generated from heartbeats.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/heartbeats.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status InvalidProgress(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PROGRESS",
                   absl::StrCat("invalid progress: ", ToAbsl(why)),
                   "Send counts from 0 to 10^12.");
}

absl::Status StatusNotReady() {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "STATUS_NOT_READY",
                   "the status service has not caught up with the aggregator yet",
                   "Try again in a moment. If the error persists, read in the log of the status service why it cannot reach the aggregator."),
                        absl::Seconds(1));
}

absl::Status PairsNotLoaded(std::string_view run, std::string_view why) {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "PAIRS_NOT_LOADED",
                   absl::StrCat("the status service does not have the pairs of the ended run ", ToAbsl(run), ", and cannot get them from the aggregator: ", ToAbsl(why)),
                   "Try again once the aggregator answers; `muster up` shows whether it runs. The state and the counts of the run are in `muster runs`."),
                        absl::Seconds(1));
}

absl::Status StatusStopping() {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "STATUS_STOPPING",
                   "the status service is stopping or restarting",
                   "Connect again."),
                        absl::Seconds(1));
}

absl::Status InvalidStatusRequest() {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_REQUEST",
                   "the request cannot be parsed",
                   "Send a request as proto/muster/v1/status.proto describes it.");
}

absl::Status InvalidHeartbeat(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_HEARTBEAT",
                   absl::StrCat("invalid heartbeat: ", ToAbsl(why)),
                   "Send heartbeats as HeartbeatService describes them, or use a client library.");
}

absl::Status NoFirstHeartbeat(absl::Duration within) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "NO_FIRST_HEARTBEAT",
                   absl::StrCat("no heartbeat was received within ", absl::FormatDuration(within), " after the stream began"),
                   "Send the first heartbeat as soon as the stream is open.");
}

absl::Status HeartbeatStreamReplaced() {
  return MakeError(absl::StatusCode::kCancelled, "HEARTBEAT_STREAM_REPLACED",
                   "a newer stream replaced this one",
                   "Send heartbeats on the newer stream.");
}

absl::Status DuplicateAgent(std::string_view node) {
  return MakeError(absl::StatusCode::kAborted, "DUPLICATE_AGENT",
                   absl::StrCat("a newer process sends heartbeats for node \"", ToAbsl(node), "\" with this identity"),
                   "Stop one of the two agents; if this machine was copied, give the copy its own identity.");
}

absl::Status TooManySenders(int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_SENDERS",
                   absl::StrCat("the status service already has ", limit, " senders of heartbeats"),
                   "Raise heartbeats.max_senders in the configuration of the status service."),
                        absl::Seconds(60));
}

absl::Status InvalidCursor() {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CURSOR",
                   "invalid cursor",
                   "Start again without a cursor.");
}

absl::Status NodeNotFound(std::string_view node) {
  return MakeError(absl::StatusCode::kNotFound, "NODE_NOT_FOUND",
                   absl::StrCat("node \"", ToAbsl(node), "\" not found in any plan or heartbeat"),
                   "Check the name in the list of nodes: muster nodes.");
}

}  // namespace muster::errors
