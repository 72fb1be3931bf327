#include "services/status/board/relay_doubt.h"

#include <memory>

#include "gtest/gtest.h"

namespace muster {
namespace {

class RelayDoubtTest : public ::testing::Test {
 protected:
  Pair& Add(const std::string& node, const RelayState* relay) {
    Pair& pair = pairs_.Add("facts", node, absl::ZeroDuration());
    auto sender = std::make_shared<Sender>("spiffe://fleet/node/" + node, node);
    sender->set_relay(relay);
    pairs_.Hear(pair, absl::Seconds(1)).sender = std::move(sender);
    return pair;
  }

  RelayState r1_{"r1"};
  RelayState r2_{"r2"};
  PairTable pairs_;
};

TEST_F(RelayDoubtTest, RelayConcernsTheRunsOfItsNodes) {
  EXPECT_EQ(FindDoubted({&r1_}, pairs_), nullptr) << "a run without pairs";
  Add("direct", nullptr);
  Add("n2", &r2_);
  EXPECT_EQ(FindDoubted({&r1_}, pairs_), nullptr);
  EXPECT_EQ(FindDoubted({&r1_, &r2_}, pairs_), &r2_);
  EXPECT_EQ(FindDoubted({}, pairs_), nullptr);
}

TEST_F(RelayDoubtTest, NodeWithoutAHeartbeatMayBeAttachedAnywhere) {
  Add("direct", nullptr);
  pairs_.Add("facts", "unheard", absl::ZeroDuration());
  EXPECT_EQ(FindDoubted({&r1_}, pairs_), &r1_);
}

TEST_F(RelayDoubtTest, PairWithAnOutcomeDoesNotCount) {
  Pair& pair = Add("n1", &r1_);
  v1::FollowChangesResponse::PairChanged change;
  change.set_outcome(v1::OUTCOME_GENUINE);
  pairs_.SetOutcome(pair, change);
  EXPECT_EQ(FindDoubted({&r1_}, pairs_), nullptr);
}

TEST_F(RelayDoubtTest, ProgressWithoutHeartbeatsDoesNotCount) {
  Pair& pair = pairs_.Add("facts", "sidecar", absl::ZeroDuration());
  pairs_.Hear(pair, absl::Seconds(1));
  EXPECT_EQ(FindDoubted({&r1_}, pairs_), nullptr) << "its silence has no meaning";
}

}  // namespace
}  // namespace muster
