#include "services/common/rpc/statement_budget.h"

#include <string>

#include "services/common/base/log.h"
#include "services/common/errors/relay.h"

namespace muster {

StatementBudget::StatementBudget(const Clock& clock, Metrics& metrics)
    : clock_(clock),
      invalid_(metrics.AddCounter("muster_invalid_statements_total",
                                  "Attach statements from relays that could not be verified.")),
      exceeded_(metrics.AddCounter(
          "muster_invalid_statement_streams_total",
          "Streams of relays that were ended because of too many invalid attach statements.")) {}

absl::Status StatementBudget::CountInvalid(std::string_view relay) {
  invalid_.Add();
  const absl::Duration wait = buckets_.Take(relay, kRate, clock_.MonotonicNow());
  if (wait == absl::ZeroDuration()) return absl::OkStatus();
  exceeded_.Add();
  LogLimited(LogLevel::kWarning, "a relay sends too many invalid attach statements", relay,
             {{"relay", relay}});
  return errors::TooManyInvalidStatements(relay);
}

}  // namespace muster
