#include "services/common/base/log_limiter.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(LogLimiterTest, EachSourceIsLoggedOnceInAPeriod) {
  LogLimiter limiter(absl::Minutes(1));
  EXPECT_EQ(limiter.Count("a", absl::Seconds(0)), 1);
  EXPECT_EQ(limiter.Count("a", absl::Seconds(1)), std::nullopt);
  EXPECT_EQ(limiter.Count("b", absl::Seconds(1)), 1);
  EXPECT_EQ(limiter.Count("a", absl::Seconds(59)), std::nullopt);
  EXPECT_EQ(limiter.Count("a", absl::Seconds(60)), 3);
  EXPECT_EQ(limiter.Count("a", absl::Seconds(61)), std::nullopt);
  EXPECT_EQ(limiter.Count("a", absl::Seconds(300)), 2);
}

TEST(LogLimiterTest, SourcesPastTheLimitCountAsOne) {
  LogLimiter limiter(absl::Minutes(1), 2);
  EXPECT_EQ(limiter.Count("a", absl::Seconds(0)), 1);
  EXPECT_EQ(limiter.Count("b", absl::Seconds(30)), 1);
  EXPECT_EQ(limiter.Count("c", absl::Seconds(40)), 1);
  EXPECT_EQ(limiter.Count("d", absl::Seconds(50)), std::nullopt);
  EXPECT_EQ(limiter.Count("a", absl::Seconds(50)), std::nullopt);
  EXPECT_EQ(limiter.Count("e", absl::Seconds(110)), 1) << "there is room again";
  EXPECT_EQ(limiter.Count("f", absl::Seconds(110)), 3) << "with the events of a and d";
}

}  // namespace
}  // namespace muster
