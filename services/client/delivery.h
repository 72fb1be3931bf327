// Tries until a result is committed, or it is clear that it cannot be.
#ifndef MUSTER_SERVICES_CLIENT_DELIVERY_H_
#define MUSTER_SERVICES_CLIENT_DELIVERY_H_

#include <functional>
#include <stop_token>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/client/attempt_state.h"
#include "services/client/result_transport.h"

namespace muster::client {

// Hears why a delivery waits before its next try, and OK when that begins.
using WaitObserver = std::function<void(const absl::Status& why)>;

// Delivers `result`: each try goes on from what the service has; between tries a random wait that
// grows to 30 s, or what the service asked for. What one sender cannot cure ends it at once
// (refused, conflict, run ended, source changed). DEADLINE_EXCEEDED (NOT_COMMITTED_IN_TIME) with
// the last error at `give_up`; CANCELLED (INTERRUPTED) soon after `stop`. What a relay holds is
// waited for; with `leave_when_spooled` that ends it: UNAVAILABLE (RESULT_SPOOLED).
absl::StatusOr<CommitReceipt> DeliverUntilCommitted(ResultTransport& transport,
                                                    OutgoingResult& result, AttemptState& attempts,
                                                    absl::Time give_up, const std::stop_token& stop,
                                                    const WaitObserver& on_wait = {},
                                                    bool leave_when_spooled = false);

// What an error of one try means for the next.
enum class NextMove { kRetry, kNewAttempt, kGiveUp };
NextMove Judge(const TryOutcome& outcome);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_DELIVERY_H_
