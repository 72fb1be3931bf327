#include "services/aggregator/runs/retention_rules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/text_values.h"

namespace muster {
namespace {

constexpr int kPageSize = 1000;

// Returns the first rule that does not keep the run, the first of `left` to have ended;
// empty: all rules keep it.
std::string RuleAgainst(const FinishedRun& run, const FinishedTotals& left,
                        const RetentionRules& rules, absl::Time now) {
  if (rules.age > absl::ZeroDuration() && absl::FromUnixMicros(run.ended_at) < now - rules.age) {
    return absl::StrCat("age=", FormatAge(rules.age));
  }
  if (rules.runs > 0 && left.runs > rules.runs) return absl::StrCat("runs=", rules.runs);
  if (rules.bytes > 0 && left.bytes > rules.bytes) {
    return absl::StrCat("bytes=", FormatByteSize(static_cast<uint64_t>(rules.bytes)));
  }
  return "";
}

}  // namespace

absl::StatusOr<FinishedTotals> VisitExpiredRuns(
    StateStore& store, const RetentionRules& rules, absl::Time now,
    absl::FunctionRef<bool(const ExpiredRun& run)> visit) {
  ASSIGN_OR_RETURN(const FinishedTotals totals, store.CountFinishedRuns());
  if (rules.KeepAll()) return totals;
  FinishedTotals left = totals;
  Page<FinishedRun> page;
  do {
    ASSIGN_OR_RETURN(page, store.FinishedRuns(page.next, kPageSize));
    for (FinishedRun& run : page.items) {
      ExpiredRun expired;
      expired.rule = RuleAgainst(run, left, rules, now);
      if (expired.rule.empty()) return totals;
      --left.runs;
      left.bytes -= run.bytes;
      expired.run = std::move(run);
      if (!visit(expired)) return totals;
    }
  } while (!page.next.empty());
  return totals;
}

}  // namespace muster
