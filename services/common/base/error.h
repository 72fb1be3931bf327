// Errors that a person can act on.
//
// Every error that leaves a Muster program is an absl::Status with three parts: a stable reason
// for programs (UPPER_SNAKE_CASE, at most 63 characters), a message that says what happened and to
// what, and the next step for the reader. The reason and the next step are payloads of the
// status; gRPC transports them (services/common/rpc/status.h).
//
// The table of errors (services/common/errors) decides reason, code and wording of each error once:
// call its constructors, not MakeError.
#ifndef MUSTER_SERVICES_COMMON_BASE_ERROR_H_
#define MUSTER_SERVICES_COMMON_BASE_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// Returns an error with its three parts. `next_step` is a full sentence, or empty if nothing can be
// done.
absl::Status MakeError(absl::StatusCode code, std::string_view reason, std::string_view message,
                       std::string_view next_step);

// Returns the reason, or an empty string for a status that MakeError did not make.
std::string ReasonOf(const absl::Status& status);

// Returns the next step for the user, or an empty string.
std::string NextStepOf(const absl::Status& status);

// Adds the time after which the caller may try again. Returns the same status for chaining.
absl::Status WithRetryAfter(absl::Status status, absl::Duration delay);

// Returns the time to wait before the next attempt, if the error contains one.
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

// Adds the attempt by which a lower one is refused. Returns the same status for chaining.
absl::Status WithNewestAttempt(absl::Status status, int64_t attempt);

// Returns the attempt by which a lower one was refused, if the error contains one.
std::optional<int64_t> NewestAttemptOf(const absl::Status& status);

// Returns the same error with `context` before its message ("open upload: ..."), and OK for OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_ERROR_H_
