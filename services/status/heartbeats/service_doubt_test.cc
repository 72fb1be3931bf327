#include "services/status/heartbeats/service_doubt.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(10);

absl::Duration At(int seconds) { return absl::Seconds(seconds); }

class ServiceDoubtTest : public ::testing::Test {
 protected:
  ServiceDoubt service_doubt_{{absl::Seconds(90), absl::Minutes(9)}};
};

TEST_F(ServiceDoubtTest, OrdinaryTickRaisesNoDoubt) {
  service_doubt_.Ticked(At(1), absl::Seconds(10), kInterval);
  EXPECT_FALSE(service_doubt_.holds(At(1)));
  EXPECT_EQ(service_doubt_.Doubt(At(1)), "");
}

TEST_F(ServiceDoubtTest, HoldUpSuspendsJudgementForTheGrace) {
  service_doubt_.Ticked(At(100), absl::Seconds(42), kInterval);
  EXPECT_TRUE(service_doubt_.holds(At(189)));
  EXPECT_NE(service_doubt_.Doubt(At(189)).find("42s"), std::string::npos)
      << service_doubt_.Doubt(At(189));
  EXPECT_FALSE(service_doubt_.holds(At(190)));
  EXPECT_EQ(service_doubt_.Doubt(At(190)), "");
}

TEST_F(ServiceDoubtTest, MoreThanAFifthIsMany) {
  service_doubt_.Count(At(1), 20, 80, 0, kInterval);
  EXPECT_FALSE(service_doubt_.doubts_many());
  service_doubt_.Count(At(2), 1, 79, 0, kInterval);
  EXPECT_TRUE(service_doubt_.doubts_many());
  EXPECT_NE(service_doubt_.Doubt(At(2)).find("21 of 100"), std::string::npos)
      << service_doubt_.Doubt(At(2));
}

TEST_F(ServiceDoubtTest, FewerThanFiveAreNeverMany) {
  service_doubt_.Count(At(1), 4, 0, 0, kInterval);
  EXPECT_FALSE(service_doubt_.doubts_many());
  service_doubt_.Count(At(2), 1, 0, 0, kInterval);
  EXPECT_TRUE(service_doubt_.doubts_many());
}

TEST_F(ServiceDoubtTest, SendersSilentOneByOneAreNotMany) {
  for (int second = 0; second < 600; second += 11) {
    service_doubt_.Count(At(second), 4, 10, 0, kInterval);
    EXPECT_FALSE(service_doubt_.doubts_many()) << second;
  }
}

TEST_F(ServiceDoubtTest, DoubtEndsWhenFewAreSilent) {
  service_doubt_.Count(At(1), 30, 70, 0, kInterval);
  service_doubt_.Count(At(40), 0, 75, 25, kInterval);
  EXPECT_TRUE(service_doubt_.doubts_many());
  service_doubt_.Count(At(50), 0, 81, 19, kInterval);
  EXPECT_FALSE(service_doubt_.doubts_many());
}

TEST_F(ServiceDoubtTest, DoubtEndsAtItsLimit) {
  service_doubt_.Count(At(0), 30, 70, 0, kInterval);
  service_doubt_.Count(At(539), 0, 70, 30, kInterval);
  EXPECT_TRUE(service_doubt_.doubts_many());
  service_doubt_.Count(At(540), 0, 70, 30, kInterval);
  EXPECT_FALSE(service_doubt_.doubts_many());
}

}  // namespace
}  // namespace muster
