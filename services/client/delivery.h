// Retries a delivery until the result is committed, or until a retry is useless.
#ifndef MUSTER_SERVICES_CLIENT_DELIVERY_H_
#define MUSTER_SERVICES_CLIENT_DELIVERY_H_

#include <functional>
#include <stop_token>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/client/attempt_state.h"
#include "services/client/result_transport.h"

namespace muster::client {

// Called with the reason when a delivery waits before its next attempt, and with OK when the
// attempt begins.
using WaitObserver = std::function<void(const absl::Status& why)>;

// Delivers `result`. Each attempt resumes at the service's offset. Between attempts it waits for
// the time that the service requests, or for a random time that grows to 30 s. An error that a
// retry cannot repair ends it immediately (refused, conflict, run ended, source changed). Fails
// with DEADLINE_EXCEEDED (NOT_COMMITTED_IN_TIME) and the last error at `give_up`, and with
// CANCELLED (INTERRUPTED) soon after `stop`. While a relay spools the result it waits; with
// `leave_when_spooled` it ends with UNAVAILABLE (RESULT_SPOOLED). After that NOT_ATTACHED is
// temporary: the relay has not restored its route yet.
absl::StatusOr<CommitReceipt> DeliverUntilCommitted(ResultTransport& transport,
                                                    OutgoingResult& result, AttemptState& attempts,
                                                    absl::Time give_up, const std::stop_token& stop,
                                                    const WaitObserver& on_wait = {},
                                                    bool leave_when_spooled = false);

// The consequence of a failed attempt. kNewAttempt: with the next number. kLaterAttempt: with a
// number that is later than that of another sender.
enum class NextMove { kRetry, kNewAttempt, kLaterAttempt, kGiveUp };
NextMove Judge(const TryOutcome& outcome);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_DELIVERY_H_
