#include "services/status/board/lost_pairs.h"

#include <utility>

namespace muster {

bool LostPairs::SetLostAfter(absl::Duration lost_after) {
  return std::exchange(lost_after_, lost_after) != lost_after;
}

void LostPairs::Update(Pair& pair, absl::Duration now) {
  if (pair.work == nullptr) return;
  const absl::Duration due = LostAt(FactsOf(pair), lost_after_);
  if (due > now) Withdraw(pair);
  if (pair.work->lost || due == absl::InfiniteDuration()) {
    due_.Remove(&pair);
  } else {
    due_.Set(&pair, due);
  }
}

void LostPairs::Tick(const Moment& now) {
  while (const auto pair = due_.PopDue(now.monotonic)) {
    Work& work = *(*pair)->work;
    const PairFacts facts = FactsOf(**pair);
    const absl::Duration due = LostAt(facts, lost_after_);
    if (due > now.monotonic) {  // a heartbeat arrived meanwhile
      if (due != absl::InfiniteDuration()) due_.Set(*pair, due);
      continue;
    }
    // The sender has changed, and the pair is not judged yet: Update follows.
    if (Severity((*pair)->reason) == 0) continue;
    work.lost = true;
    v1::Verdict verdict;
    *verdict.mutable_lost()->mutable_key() = KeyOf(run_, **pair);
    verdict.mutable_lost()->set_reason(WhyLost((*pair)->reason, facts, now));
    *verdict.mutable_lost()->mutable_since() = ToTimestamp(now.WallOf(facts.silent_since()));
    verdicts_.Add(verdict);
  }
}

void LostPairs::Withdraw(Pair& pair) {
  if (std::exchange(pair.work->lost, false)) verdicts_.WithdrawLost(KeyOf(run_, pair));
}

}  // namespace muster
