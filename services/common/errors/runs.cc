// Generated from runs.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/runs.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status RunNotFound(std::string_view run) {
  return MakeError(absl::StatusCode::kNotFound, "RUN_NOT_FOUND",
                   absl::StrCat("run \"", ToAbsl(run), "\" not found"),
                   "List the runs: muster runs.");
}

absl::Status RunNotEnded(std::string_view run) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RUN_NOT_ENDED",
                   absl::StrCat("run ", ToAbsl(run), " has not ended"),
                   "Cancel the run, or wait until it has ended.");
}

absl::Status RunEnded(std::string_view run) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RUN_ENDED",
                   absl::StrCat("run ", ToAbsl(run), " has ended"),
                   "Start a new run.");
}

absl::Status AggregatorStopping() {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "AGGREGATOR_STOPPING",
                   "the aggregator is stopping or restarting",
                   "Try again in a moment; `muster up` starts stopped services."),
                        absl::Seconds(1));
}

absl::Status RunSealed(std::string_view run) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RUN_SEALED",
                   absl::StrCat("run ", ToAbsl(run), " is sealed and accepts no results"),
                   "Deliver to a newer run; the archive of this run is final.");
}

absl::Status RunCancelled(std::string_view run) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RUN_CANCELLED",
                   absl::StrCat("run ", ToAbsl(run), " was cancelled or has failed"),
                   "Start a new run.");
}

absl::Status PairNotPlanned(std::string_view run, std::string_view plugin, std::string_view node) {
  return MakeError(absl::StatusCode::kPermissionDenied, "PAIR_NOT_PLANNED",
                   absl::StrCat("the plan of run ", ToAbsl(run), " does not contain plugin \"", ToAbsl(plugin), "\" on node \"", ToAbsl(node), "\""),
                   "Compare both names with the plan of the run (muster status); a plugin that runs once delivers for the node \"global\", and a credential for any node needs the name of the node in NODE_NAME.");
}

absl::Status InvalidPlugin(std::string_view plugin, std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PLUGIN",
                   absl::StrCat("invalid plugin ", ToAbsl(plugin), ": ", ToAbsl(why)),
                   "Correct the definition; docs/plugins.md describes it.");
}

absl::Status InvalidPluginDefinition(std::string_view mistakes) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PLUGIN",
                   mistakes,
                   "Correct the definition; docs/plugins.md describes it.");
}

absl::Status InvalidTimeout(std::string_view field, absl::Duration value, std::string_view limits) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_TIMEOUT",
                   absl::StrCat(ToAbsl(field), " ", absl::FormatDuration(value), " is outside ", ToAbsl(limits)),
                   "Give a value within these limits.");
}

absl::Status EmptyPlan() {
  return MakeError(absl::StatusCode::kInvalidArgument, "EMPTY_PLAN",
                   "the plan expects no result: it has no plugin, or no node for a plugin that runs on each node",
                   "Name at least one plugin, and nodes unless every plugin runs once.");
}

absl::Status PlanTooLarge(int64_t pairs, int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, "PLAN_TOO_LARGE",
                   absl::StrCat("the plan has ", pairs, " results, more than ", limit),
                   "Split it into several runs.");
}

absl::Status InvalidRunId(std::string_view run) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                   absl::StrCat("invalid run id \"", ToAbsl(run), "\""),
                   "Give the 16 lower-case hex digits of a run: muster runs.");
}

absl::Status GlobalIsNoNode() {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                   "invalid node name \"global\": it stands for plugins that run once",
                   "Choose another name for the node.");
}

absl::Status NodeNamedTwice(std::string_view node) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                   absl::StrCat("the plan names node \"", ToAbsl(node), "\" twice"),
                   "Name it once.");
}

absl::Status NodeOrAnyNode() {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                   "a credential is either for one node or for any node",
                   "Set either node or any_node.");
}

absl::Status TextTooLong(std::string_view field, int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, "TEXT_TOO_LONG",
                   absl::StrCat(ToAbsl(field), " is longer than ", limit, " bytes"),
                   "Shorten it.");
}

absl::Status InvalidPageToken() {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PAGE_TOKEN",
                   "invalid page token",
                   "List again without a page token.");
}

absl::Status InvalidPageSize(int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PAGE_SIZE",
                   absl::StrCat("the page size is not between 0 and ", limit),
                   "Choose a smaller page.");
}

absl::Status InvalidRetention(std::string_view rule) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_RETENTION",
                   absl::StrCat("the value of the rule ", ToAbsl(rule), " is negative"),
                   "Use 0 for no limit, or a positive value.");
}

absl::Status ListenerNotReady(std::string_view run, std::string_view fault) {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "LISTENER_NOT_READY",
                   absl::StrCat("the listener of run ", ToAbsl(run), " is not open", fault.empty() ? "" : ": ", ToAbsl(fault)),
                   "Check that the gateway runs. If no port is free: end runs, widen the range (muster up --legacy-ports), or give runs host names on one port (--legacy-host)."),
                        absl::Seconds(2));
}

absl::Status InvalidPort(int64_t port) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PORT",
                   absl::StrCat("invalid port ", port),
                   "Choose a port from 1 to 65535.");
}

absl::Status PortIsFixed(std::string_view run, int64_t port) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "PORT_IS_FIXED",
                   absl::StrCat("the port of run ", ToAbsl(run), " is ", port, " and cannot change"),
                   "Open that port.");
}

absl::Status StatusListenerExists(std::string_view run) {
  return MakeError(absl::StatusCode::kAlreadyExists, "STATUS_LISTENER_EXISTS",
                   absl::StrCat("run ", ToAbsl(run), " already has its own status listener"),
                   "Use that listener: `muster runs --json` shows its address.");
}

absl::Status NoStatusListener(std::string_view run) {
  return MakeError(absl::StatusCode::kNotFound, "NO_STATUS_LISTENER",
                   absl::StrCat("run ", ToAbsl(run), " has no status listener of its own"),
                   "Use the status listener of the fleet, or start a run with a certificate for it.");
}

absl::Status InvalidStatusCertificate(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_STATUS_CERTIFICATE",
                   absl::StrCat("invalid certificate for the status listener: ", ToAbsl(why)),
                   "Give the files in PEM: a currently valid server certificate followed by its issuers, its unencrypted key, and the CA of the clients.");
}

absl::Status Overloaded() {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "OVERLOADED",
                   "too many requests wait in this service",
                   "Try again later."),
                        absl::Seconds(1));
}

}  // namespace muster::errors
