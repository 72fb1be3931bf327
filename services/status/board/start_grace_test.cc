#include "services/status/board/start_grace.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/status/board/pair_table.h"

namespace muster {
namespace {

class StartGraceTest : public ::testing::Test {
 protected:
  StartGraceTest() { grace_.SetRun(/*planned=*/true, absl::Minutes(5)); }

  VerdictLog verdicts_;
  StartGrace grace_{"0123456789abcdef", /*known_since=*/absl::Seconds(100), verdicts_};
};

TEST_F(StartGraceTest, GraceCountsFromWhenTheServiceCouldBeReached) {
  EXPECT_EQ(grace_.ReportBy(absl::Seconds(50)), absl::Seconds(400));
  EXPECT_EQ(grace_.ReportBy(absl::Seconds(200)), absl::Seconds(500));
  EXPECT_FALSE(grace_.IsOver(absl::Seconds(499), absl::Seconds(200)));
  EXPECT_TRUE(grace_.IsOver(absl::Seconds(500), absl::Seconds(200)));
}

TEST_F(StartGraceTest, ReportedAgentEndsTheGrace) {
  grace_.MarkReported();
  EXPECT_EQ(grace_.ReportBy({}), std::nullopt);
  EXPECT_FALSE(grace_.IsOver(absl::Hours(1), {}));
}

TEST_F(StartGraceTest, RunWithoutGraceWaitsForNoAgent) {
  grace_.SetRun(/*planned=*/true, absl::ZeroDuration());
  EXPECT_FALSE(grace_.IsOver(absl::Hours(1), {}));
}

TEST_F(StartGraceTest, VerdictStandsWhileTheRunIsPlanned) {
  grace_.Expire("n1: no report");
  EXPECT_EQ(verdicts_.Next(0)->verdict.start_grace_expired().reason(), "n1: no report");
  EXPECT_FALSE(grace_.IsOver(absl::Hours(1), {})) << "one verdict is enough";
  grace_.SetRun(/*planned=*/true, absl::Minutes(5));
  EXPECT_EQ(verdicts_.standing(), 1u);
  grace_.SetRun(/*planned=*/false, absl::Minutes(5));
  EXPECT_EQ(verdicts_.standing(), 0u);
}

TEST(AnySenderWaitsTest, OnlineSenderWithoutAFaultWaits) {
  PairTable pairs;
  Pair& pair = pairs.Add("facts", "n1", {});
  pairs.Add("facts", "n2", {});
  EXPECT_FALSE(AnySenderWaits(pairs));
  const auto sender = std::make_shared<Sender>("spiffe://f/node/n1", "n1");
  pairs.Hear(pair, {}).sender = sender;
  pairs.SetReason(pair, v1::REASON_RUNNING, {});
  EXPECT_FALSE(AnySenderWaits(pairs)) << "not online";
  sender->set_presence(v1::PRESENCE_ONLINE, {});
  EXPECT_TRUE(AnySenderWaits(pairs));
  pair.work->fault = std::make_unique<v1::Fault>();
  EXPECT_FALSE(AnySenderWaits(pairs));
}

TEST(WhyNotReportedTest, NodesWithAFaultComeFirst) {
  PairTable pairs;
  pairs.Add("facts", "n1", {});
  auto fault = std::make_unique<v1::Fault>();
  fault->set_check(v1::Fault::CHECK_CONNECTION);
  fault->set_address("10.0.0.1:8443");
  fault->set_message("connection refused");
  pairs.Hear(pairs.Add("facts", "n2", {}), {}).fault = std::move(fault);
  EXPECT_EQ(WhyNotReported(pairs),
            "n2: CONNECTION: 10.0.0.1:8443: connection refused; n1: no heartbeat received");
  for (int i = 0; i < 200; ++i) pairs.Add("facts", absl::StrCat("x", i), {});
  EXPECT_EQ(WhyNotReported(pairs).find("n2: CONNECTION"), 0u);
  EXPECT_NE(WhyNotReported(pairs).find("; and others"), std::string::npos);
}

}  // namespace
}  // namespace muster
