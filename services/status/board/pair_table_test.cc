#include "services/status/board/pair_table.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

v1::FollowChangesResponse::PairChanged Outcome(v1::Outcome outcome, int64_t generation) {
  v1::FollowChangesResponse::PairChanged change;
  change.set_outcome(outcome);
  change.set_generation(generation);
  return change;
}

// Checks the invariants of the class comment.
void Check(const PairTable& table) {
  size_t size = 0;
  for (const auto& [name, plugin] : table.plugins()) {
    size += plugin.pairs.size();
    std::array<int64_t, v1::Outcome_ARRAYSIZE> outcomes = {};
    std::array<int64_t, v1::Reason_ARRAYSIZE> reasons = {};
    int64_t unheard = 0;
    for (const Pair& pair : plugin.pairs) {
      ++outcomes[pair.outcome];
      if (pair.pending()) ++reasons[pair.reason];
      if (pair.pending() && pair.work == nullptr) ++unheard;
      EXPECT_EQ(*pair.by_reason, &pair);
      EXPECT_EQ(table.Find(name, pair.node), &pair);
    }
    EXPECT_EQ(plugin.counts.planned(), static_cast<int64_t>(plugin.pairs.size()));
    EXPECT_EQ(plugin.counts.pending(), outcomes[v1::OUTCOME_PENDING]);
    EXPECT_EQ(plugin.counts.genuine(), outcomes[v1::OUTCOME_GENUINE]);
    EXPECT_EQ(plugin.counts.errors(), outcomes[v1::OUTCOME_ERROR]);
    EXPECT_EQ(plugin.counts.timed_out(), outcomes[v1::OUTCOME_TIMED_OUT]);
    EXPECT_EQ(plugin.reasons, reasons);
    EXPECT_EQ(plugin.unheard, unheard);
    for (size_t i = 1; i < plugin.sorted.size(); ++i) {
      EXPECT_LT(plugin.sorted[i - 1]->node, plugin.sorted[i]->node);
    }
  }
  EXPECT_EQ(table.size(), size);
}

TEST(PairTableTest, NewPairIsNotStarted) {
  PairTable table;
  for (const char* node : {"n2", "n1", "n3"}) table.Add("facts", node, absl::Seconds(5));
  table.Add("logs", "n1", absl::Seconds(5));
  Check(table);
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(table.with_reason(v1::REASON_NOT_STARTED).size(), 4u);
  EXPECT_EQ(table.Find("facts", "n4"), nullptr);
  EXPECT_EQ(table.Find("other", "n1"), nullptr);
}

TEST(PairTableTest, ReasonMovesThePairToTheEndOfItsList) {
  PairTable table;
  Pair& first = table.Add("facts", "n1", {});
  Pair& second = table.Add("facts", "n2", {});
  EXPECT_TRUE(table.SetReason(second, v1::REASON_STUCK, absl::Seconds(1)));
  EXPECT_TRUE(table.SetReason(first, v1::REASON_STUCK, absl::Seconds(2)));
  EXPECT_FALSE(table.SetReason(first, v1::REASON_STUCK, absl::Seconds(3)));
  EXPECT_EQ(first.reason_since, absl::Seconds(2));
  EXPECT_EQ(table.with_reason(v1::REASON_STUCK), (PairList{&second, &first}));
  EXPECT_TRUE(table.with_reason(v1::REASON_NOT_STARTED).empty());
  Check(table);
}

TEST(PairTableTest, OutcomesAreCountedOnce) {
  PairTable table;
  Pair& heard = table.Add("facts", "n1", {});
  Pair& unheard = table.Add("facts", "n2", {});
  EXPECT_EQ(table.Hear(heard, absl::Seconds(1)).began, absl::Seconds(1));
  EXPECT_EQ(table.Hear(heard, absl::Seconds(2)).began, absl::Seconds(1));
  Check(table);
  for (Pair* const pair : {&heard, &unheard}) {
    table.SetOutcome(*pair, Outcome(v1::OUTCOME_ERROR, 1));
    table.SetReason(*pair, v1::REASON_UNSPECIFIED, {});
    Check(table);
    table.SetOutcome(*pair, Outcome(v1::OUTCOME_GENUINE, 2));
    Check(table);
    EXPECT_EQ(pair->generation, 2);
  }
}

TEST(PairTableTest, RevokedOutcomeMakesThePairUnfinished) {
  PairTable table;
  Pair& heard = table.Add("facts", "n1", {});
  Pair& unheard = table.Add("facts", "n2", {});
  table.Hear(heard, {});
  for (Pair* const pair : {&heard, &unheard}) {
    table.SetOutcome(*pair, Outcome(v1::OUTCOME_GENUINE, 1));
    table.SetReason(*pair, v1::REASON_UNSPECIFIED, {});
    table.SetOutcome(*pair, Outcome(v1::OUTCOME_PENDING, 0));
    table.SetReason(*pair, v1::REASON_RUNNING, {});
    Check(table);
  }
}

}  // namespace
}  // namespace muster
