#include "services/common/rpc/statement_budget.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

TEST(StatementBudgetTest, RelayWithTooManyInvalidStatementsIsRefusedAndOthersAreNot) {
  FakeClock clock;
  Metrics metrics;
  StatementBudget budget(clock, metrics);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(budget.CountInvalid("r1").ok()) << i;
  EXPECT_EQ(ReasonOf(budget.CountInvalid("r1")), "TOO_MANY_INVALID_STATEMENTS");
  EXPECT_TRUE(budget.CountInvalid("r2").ok());
  EXPECT_NE(metrics.Text().find("muster_invalid_statement_streams_total 1\n"), std::string::npos);
  clock.Advance(absl::Seconds(1));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(budget.CountInvalid("r1").ok()) << i;
  EXPECT_FALSE(budget.CountInvalid("r1").ok());
}

}  // namespace
}  // namespace muster
