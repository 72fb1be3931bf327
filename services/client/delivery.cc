#include "services/client/delivery.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "services/client/errors.h"
#include "services/common/base/backoff.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/client.h"

namespace muster::client {
namespace {

// The limit of new attempts: a file that arrives damaged repeatedly, or an attempt that is
// overtaken repeatedly, does not recover.
constexpr int kMostNewAttempts = 4;

// A stop token that is also triggered at a time, so that a waiting attempt ends then.
class TimeLimit {
 public:
  TimeLimit(absl::Time end, const std::stop_token& outer)
      : outer_(outer, [this] { inner_.request_stop(); }),
        timer_([this, end](const std::stop_token& done) {
          if (WaitFor(end - absl::Now(), done)) inner_.request_stop();
        }) {}

  std::stop_token token() const { return inner_.get_token(); }

 private:
  std::stop_source inner_;
  std::stop_callback<std::function<void()>> outer_;
  std::jthread timer_;
};

// Returns an attempt that the service does not refuse as `why` did. A sender that numbers its
// attempts by the time may have a clock that is ahead of this one.
int64_t LaterAttempt(const absl::Status& why) {
  const int64_t newest = NewestAttemptOf(why).value_or(0);
  if (newest < 1 || newest == std::numeric_limits<int64_t>::max()) {
    return absl::GetCurrentTimeNanos();
  }
  return newest + 1;
}

}  // namespace

NextMove Judge(const TryOutcome& outcome) {
  const absl::Status& status = outcome.receipt.status();
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:  // UPLOAD_STALLED
    case absl::StatusCode::kOutOfRange:        // OFFSET_TOO_HIGH
    case absl::StatusCode::kInternal:          // a fault of the service, which may be temporary
      return NextMove::kRetry;
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
      // An error without a reason comes from the transport: a reset stream, or a lost proxy.
      return ReasonOf(status).empty() ? NextMove::kRetry : NextMove::kGiveUp;
    case absl::StatusCode::kNotFound:
      return ReasonOf(status) == "UPLOAD_NOT_FOUND" ? NextMove::kRetry : NextMove::kGiveUp;
    case absl::StatusCode::kDataLoss:
      return NextMove::kNewAttempt;
    case absl::StatusCode::kAborted:
      if (ReasonOf(status) != "TAKEN_OVER") return NextMove::kGiveUp;
      // Refused at the open: the number is outdated, for example after the loss of the state
      // folder.
      return outcome.opened ? NextMove::kRetry : NextMove::kLaterAttempt;
    default:
      return NextMove::kGiveUp;
  }
}

absl::StatusOr<CommitReceipt> DeliverUntilCommitted(ResultTransport& transport,
                                                    OutgoingResult& result, AttemptState& attempts,
                                                    absl::Time give_up, const std::stop_token& stop,
                                                    const WaitObserver& on_wait,
                                                    bool leave_when_spooled) {
  Backoff backoff;
  int new_attempts = 0;
  bool spooled = false;
  absl::Status last;
  TimeLimit limit(give_up, stop);
  while (true) {
    TryOutcome outcome = transport.Try(result, limit.token());
    if (outcome.receipt.ok()) return outcome.receipt;
    if (stop.stop_requested()) return errors::Interrupted();
    if (limit.token().stop_requested()) return DeadlineError(last);
    last = outcome.receipt.status();
    if (leave_when_spooled && outcome.spooled) return last;
    spooled = spooled || outcome.spooled;
    const NextMove move = Judge(outcome);
    // A relay that spooled the result was disconnected. It attaches to its parent before the
    // parent has the node's attach statement again.
    const bool temporary = spooled && ReasonOf(last) == "NOT_ATTACHED";
    if (move == NextMove::kGiveUp && !temporary) return last;
    if (move == NextMove::kNewAttempt || move == NextMove::kLaterAttempt) {
      if (++new_attempts > kMostNewAttempts) return last;
      const int64_t least = move == NextMove::kNewAttempt ? 1 : LaterAttempt(last);
      ASSIGN_OR_RETURN(result.info.attempt, attempts.Next(least));
    }
    if (outcome.progressed) backoff.Reset();
    if (on_wait) on_wait(last);
    if (!WaitFor(backoff.Next(RetryAfterOf(last)), limit.token())) {
      return stop.stop_requested() ? errors::Interrupted() : DeadlineError(last);
    }
    if (on_wait) on_wait(absl::OkStatus());
  }
}

}  // namespace muster::client
