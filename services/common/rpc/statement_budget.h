// Limits how many attach statements with a wrong signature a relay may send.
#ifndef MUSTER_SERVICES_COMMON_RPC_STATEMENT_BUDGET_H_
#define MUSTER_SERVICES_COMMON_RPC_STATEMENT_BUDGET_H_

#include <string_view>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/token_buckets.h"

namespace muster {

// Statements that are verified before other callers get their turn on the executor.
inline constexpr int kStatementsOfTurn = 32;

// A verification takes a tenth of a millisecond, and a relay may send hundreds of statements in one
// message. A relay verifies the statements of its children itself, so an honest one sends few that
// fail. Thread-safe.
class StatementBudget {
 public:
  static constexpr TokenBuckets::Rate kRate = {.per_second = 10, .burst = 1000};

  StatementBudget(const Clock& clock, Metrics& metrics);

  // A statement from `relay`, or from a relay with the stream of another one, could not be
  // verified. TOO_MANY_INVALID_STATEMENTS beyond the limit: its stream has to end.
  absl::Status CountInvalid(std::string_view relay);

 private:
  const Clock& clock_;
  const Counter invalid_;
  const Counter exceeded_;
  TokenBuckets buckets_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_STATEMENT_BUDGET_H_
