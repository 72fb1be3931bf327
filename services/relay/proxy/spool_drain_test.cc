#include "services/relay/proxy/spool_drain.h"

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/results.h"
#include "services/relay/testing/spool_fixture.h"
#include "services/relay/testing/stub_upstream.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SpoolFixture;
using testing::StubUpstream;

// Answers as the test says, and notes what it was asked for.
struct FakeSender final : ResultSender {
  absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token&) override {
    calls.push_back(absl::StrCat("deliver ", delivery.header.description().key().node()));
    return answer;
  }
  absl::Status ReportExpired(const SpoolDelivery& delivery, const std::stop_token&) override {
    calls.push_back(absl::StrCat("expired ", delivery.header.description().key().node()));
    return answer;
  }

  absl::Status answer;
  std::vector<std::string> calls;
};

class SpoolDrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fixture_.Open().ok());
    drain_.emplace(fixture_.spool(), upstream_, sender_, fixture_.clock);
  }
  void TearDown() override { drain_.reset(); }

  absl::Duration RunOnce() { return drain_->RunOnce(std::stop_token()); }
  static std::string Outcome(const std::string& outcome) {
    return absl::StrCat("muster_relay_spool_outcomes_total{outcome=\"", outcome, "\"} 1\n");
  }

  SpoolFixture fixture_;
  StubUpstream upstream_;
  FakeSender sender_;
  std::optional<SpoolDrain> drain_;
};

TEST_F(SpoolDrainTest, ResultIsDeliveredOnceAndRemoved) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  EXPECT_EQ(RunOnce(), absl::ZeroDuration());
  EXPECT_THAT(sender_.calls, ElementsAre("deliver n1"));
  EXPECT_GT(RunOnce(), absl::ZeroDuration());
  EXPECT_EQ(sender_.calls.size(), 1u);
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("committed")));
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 0\n"));
}

TEST_F(SpoolDrainTest, NothingIsDeliveredWithoutUpstreamConnection) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  upstream_.SetConnected(false);
  EXPECT_GT(RunOnce(), absl::ZeroDuration());
  EXPECT_THAT(sender_.calls, IsEmpty());
  upstream_.SetConnected(true);
  RunOnce();
  EXPECT_THAT(sender_.calls, ElementsAre("deliver n1"));
}

TEST_F(SpoolDrainTest, TemporaryErrorIsRepeatedAfterAWait) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  sender_.answer = absl::ResourceExhaustedError("overloaded");
  EXPECT_EQ(RunOnce(), absl::ZeroDuration());
  RunOnce();
  EXPECT_EQ(sender_.calls.size(), 1u) << "repeated without a wait";
  fixture_.clock.Advance(absl::Seconds(5));
  sender_.answer = absl::OkStatus();
  RunOnce();
  EXPECT_THAT(sender_.calls, ElementsAre("deliver n1", "deliver n1"));
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("committed")));
}

TEST_F(SpoolDrainTest, UnavailableUpstreamHoldsUpAllResults) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  ASSERT_TRUE(fixture_.Deliver("n2", "facts", "body").ok());
  sender_.answer = errors::RelayCutOff();
  EXPECT_GT(RunOnce(), absl::ZeroDuration());
}

TEST_F(SpoolDrainTest, RejectedResultIsRemoved) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  sender_.answer = errors::InvalidSignature("another key");
  EXPECT_EQ(RunOnce(), absl::ZeroDuration());
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("refused")));
  RunOnce();
  EXPECT_EQ(sender_.calls.size(), 1u);
}

TEST_F(SpoolDrainTest, ErrorThatConcernsTheRelayKeepsTheResult) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  sender_.answer = errors::NotAttached("n1");
  RunOnce();
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 1\n"));
}

TEST_F(SpoolDrainTest, ExpiredResultIsReported) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  fixture_.clock.Advance(fixture_.options.ttl + absl::Hours(1));
  RunOnce();
  EXPECT_THAT(sender_.calls, ElementsAre("expired n1"));
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("expired")));
}

}  // namespace
}  // namespace muster
