#include "services/aggregator/verdicts/verdicts.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "services/aggregator/testing/test_state.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using testing::TestState;

constexpr char kActor[] = "spiffe://f.muster/service/aggregator/main";

class VerdictsTest : public ::testing::Test {
 protected:
  absl::Status Lose(std::string_view node, std::string_view why,
                    absl::Time since = absl::InfinitePast()) {
    std::promise<absl::Status> done;
    verdicts_.Lose(KeyOf(node), why, since,
                   [&](const absl::Status& status) { done.set_value(status); });
    return done.get_future().get();
  }

  absl::Status StartGraceExpired(std::string_view why) {
    std::promise<absl::Status> done;
    verdicts_.StartGraceExpired(kRun, why,
                                [&](const absl::Status& status) { done.set_value(status); });
    return done.get_future().get();
  }

  std::string ErrorOf(std::string_view node) {
    return (*state_.store().GetResult(KeyOf(node)))->error;
  }

  TestState state_;
  Verdicts verdicts_{state_.store(), state_.clock, kActor};
};

TEST_F(VerdictsTest, ErrorContainsTheReasonAndTheTime) {
  state_.Plan({"n1", "n2", "n3"});
  EXPECT_TRUE(Lose("n1", "CRASHED", absl::FromUnixSeconds(3600)).ok());
  EXPECT_EQ(ErrorOf("n1"), "lost: CRASHED; silent since 1970-01-01 01:00:00 UTC");
  EXPECT_TRUE(Lose("n2", "CRASHED").ok());
  EXPECT_EQ(ErrorOf("n2"), "lost: CRASHED");
  EXPECT_EQ(verdicts_.lost(), 2);
}

TEST_F(VerdictsTest, VerdictWithoutEffectIsNotCounted) {
  EXPECT_TRUE(Lose("n1", "CRASHED").ok());  // no run
  EXPECT_TRUE(StartGraceExpired("").ok());
  state_.Plan({"n1"});
  state_.Apply(Genuine(KeyOf("n1"), "{}"));
  EXPECT_TRUE(Lose("n1", "CRASHED").ok());
  EXPECT_TRUE(StartGraceExpired("").ok());
  EXPECT_EQ(verdicts_.lost(), 0);
  EXPECT_EQ(verdicts_.start_grace_expired(), 0);
  EXPECT_EQ(state_.Run().state, RunState::kPostProcessing);
}

TEST_F(VerdictsTest, ExpiredStartGraceIsTheReasonOfTheRun) {
  state_.Plan({"n1"});
  EXPECT_TRUE(StartGraceExpired("n1: no heartbeat received").ok());
  EXPECT_TRUE(StartGraceExpired("n1: no heartbeat received").ok());
  EXPECT_EQ(state_.Run().state, RunState::kFailed);
  EXPECT_EQ(state_.Run().reason,
            "no agent reported within the start grace: n1: no heartbeat received");
  EXPECT_EQ(verdicts_.start_grace_expired(), 1);
  EXPECT_EQ(state_.store().Audit({.run = kRun}, "", 10)->items.back().actor, kActor);
}

TEST_F(VerdictsTest, LongReasonIsTruncated) {
  state_.Plan({"n1", "n2"});
  std::string why;
  for (int i = 0; i < 100'000; ++i) why += "\u00e4";
  EXPECT_TRUE(Lose("n1", why).ok());
  EXPECT_EQ(ErrorOf("n1"), "lost: " + why.substr(0, 2048));
  EXPECT_TRUE(StartGraceExpired(why).ok());
  EXPECT_LT(state_.Run().reason.size(), 17'000U);
}

TEST_F(VerdictsTest, FullStoreReturnsAnError) {
  SqliteHarness full({.max_queue = 0});
  ASSERT_TRUE(full.Open().ok());
  Verdicts verdicts(full.state(), state_.clock, kActor);
  std::string reason;
  const auto done = [&](const absl::Status& status) { reason = ReasonOf(status); };
  verdicts.Lose(KeyOf("n1"), "CRASHED", absl::InfinitePast(), done);
  EXPECT_EQ(reason, "STORE_BUSY");
  reason.clear();
  verdicts.StartGraceExpired(kRun, "", done);
  EXPECT_EQ(reason, "STORE_BUSY");
}

}  // namespace
}  // namespace muster
