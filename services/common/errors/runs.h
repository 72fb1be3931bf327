// Generated from runs.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_RUNS_H_
#define MUSTER_SERVICES_COMMON_ERRORS_RUNS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

// Runs.
namespace muster::errors {

// NOT_FOUND, RUN_NOT_FOUND.
absl::Status RunNotFound(std::string_view run);
// FAILED_PRECONDITION, RUN_NOT_ENDED.
absl::Status RunNotEnded(std::string_view run);
// FAILED_PRECONDITION, RUN_ENDED.
absl::Status RunEnded(std::string_view run);
// UNAVAILABLE, AGGREGATOR_STOPPING.
absl::Status AggregatorStopping();
// FAILED_PRECONDITION, RUN_SEALED.
absl::Status RunSealed(std::string_view run);
// FAILED_PRECONDITION, RUN_CANCELLED.
absl::Status RunCancelled(std::string_view run);
// PERMISSION_DENIED, PAIR_NOT_PLANNED.
absl::Status PairNotPlanned(std::string_view run, std::string_view plugin, std::string_view node);
// INVALID_ARGUMENT, INVALID_PLUGIN.
absl::Status InvalidPlugin(std::string_view plugin, std::string_view why);
// INVALID_ARGUMENT, INVALID_PLUGIN.
absl::Status InvalidPluginDefinition(std::string_view mistakes);
// INVALID_ARGUMENT, INVALID_TIMEOUT.
absl::Status InvalidTimeout(std::string_view field, absl::Duration value, std::string_view limits);
// INVALID_ARGUMENT, EMPTY_PLAN.
absl::Status EmptyPlan();
// INVALID_ARGUMENT, PLAN_TOO_LARGE.
absl::Status PlanTooLarge(int64_t pairs, int64_t limit);
// INVALID_ARGUMENT, INVALID_NAME.
absl::Status InvalidRunId(std::string_view run);
// INVALID_ARGUMENT, INVALID_NAME.
absl::Status GlobalIsNoNode();
// INVALID_ARGUMENT, INVALID_NAME.
absl::Status NodeNamedTwice(std::string_view node);
// INVALID_ARGUMENT, INVALID_NAME.
absl::Status NodeOrAnyNode();
// INVALID_ARGUMENT, TEXT_TOO_LONG.
absl::Status TextTooLong(std::string_view field, int64_t limit);
// INVALID_ARGUMENT, INVALID_PAGE_TOKEN.
absl::Status InvalidPageToken();
// INVALID_ARGUMENT, INVALID_PAGE_SIZE.
absl::Status InvalidPageSize(int64_t limit);
// INVALID_ARGUMENT, INVALID_RETENTION.
absl::Status InvalidRetention(std::string_view rule);
// UNAVAILABLE, LISTENER_NOT_READY.
absl::Status ListenerNotReady(std::string_view run, std::string_view fault);
// INVALID_ARGUMENT, INVALID_PORT.
absl::Status InvalidPort(int64_t port);
// FAILED_PRECONDITION, PORT_IS_FIXED.
absl::Status PortIsFixed(std::string_view run, int64_t port);
// ALREADY_EXISTS, STATUS_LISTENER_EXISTS.
absl::Status StatusListenerExists(std::string_view run);
// NOT_FOUND, NO_STATUS_LISTENER.
absl::Status NoStatusListener(std::string_view run);
// INVALID_ARGUMENT, INVALID_STATUS_CERTIFICATE.
absl::Status InvalidStatusCertificate(std::string_view why);
// RESOURCE_EXHAUSTED, OVERLOADED.
absl::Status Overloaded();

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_RUNS_H_
