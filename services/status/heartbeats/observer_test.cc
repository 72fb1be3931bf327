#include "services/status/heartbeats/observer.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(10);

absl::Duration At(int seconds) { return absl::Seconds(seconds); }

class ObserverTest : public ::testing::Test {
 protected:
  Observer observer_{{absl::Seconds(90), absl::Minutes(9)}};
};

TEST_F(ObserverTest, OrdinaryTickRaisesNoDoubt) {
  observer_.Ticked(At(1), absl::Seconds(10), kInterval);
  EXPECT_FALSE(observer_.holds(At(1)));
  EXPECT_EQ(observer_.Doubt(At(1)), "");
}

TEST_F(ObserverTest, HoldUpSuspendsJudgementForTheGrace) {
  observer_.Ticked(At(100), absl::Seconds(42), kInterval);
  EXPECT_TRUE(observer_.holds(At(189)));
  EXPECT_NE(observer_.Doubt(At(189)).find("42s"), std::string::npos) << observer_.Doubt(At(189));
  EXPECT_FALSE(observer_.holds(At(190)));
  EXPECT_EQ(observer_.Doubt(At(190)), "");
}

TEST_F(ObserverTest, MoreThanAFifthIsMany) {
  observer_.Count(At(1), 20, 80, 0, kInterval);
  EXPECT_FALSE(observer_.doubts_many());
  observer_.Count(At(2), 1, 79, 0, kInterval);
  EXPECT_TRUE(observer_.doubts_many());
  EXPECT_NE(observer_.Doubt(At(2)).find("21 of 100"), std::string::npos) << observer_.Doubt(At(2));
}

TEST_F(ObserverTest, FewerThanFiveAreNeverMany) {
  observer_.Count(At(1), 4, 0, 0, kInterval);
  EXPECT_FALSE(observer_.doubts_many());
  observer_.Count(At(2), 1, 0, 0, kInterval);
  EXPECT_TRUE(observer_.doubts_many());
}

TEST_F(ObserverTest, SendersSilentOneByOneAreNotMany) {
  for (int second = 0; second < 600; second += 11) {
    observer_.Count(At(second), 4, 10, 0, kInterval);
    EXPECT_FALSE(observer_.doubts_many()) << second;
  }
}

TEST_F(ObserverTest, DoubtEndsWhenFewAreSilent) {
  observer_.Count(At(1), 30, 70, 0, kInterval);
  observer_.Count(At(40), 0, 75, 25, kInterval);
  EXPECT_TRUE(observer_.doubts_many());
  observer_.Count(At(50), 0, 81, 19, kInterval);
  EXPECT_FALSE(observer_.doubts_many());
}

TEST_F(ObserverTest, DoubtEndsAtItsLimit) {
  observer_.Count(At(0), 30, 70, 0, kInterval);
  observer_.Count(At(539), 0, 70, 30, kInterval);
  EXPECT_TRUE(observer_.doubts_many());
  observer_.Count(At(540), 0, 70, 30, kInterval);
  EXPECT_FALSE(observer_.doubts_many());
}

}  // namespace
}  // namespace muster
