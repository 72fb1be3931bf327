// Deliveries of a spool on a fake clock, to a fake peer.
#include "services/relay/proxy/spool_drain_step.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/relay/testing/spool_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::SpoolFixture;

class FakePeer : public SpoolDrainPeer {
 public:
  absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token&) override {
    calls.push_back(absl::StrCat("deliver ", delivery.header.description().key().plugin()));
    return answer;
  }
  absl::Status ReportExpired(const SpoolDelivery& delivery, const std::stop_token&) override {
    calls.push_back(absl::StrCat("expired ", delivery.header.description().key().plugin()));
    return answer;
  }

  absl::Status answer;
  std::vector<std::string> calls;
};

class SpoolDrainStepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fixture_.Open().ok());
    ASSERT_TRUE(fixture_.Deliver("n1", "facts", "abc").ok());
  }

  DrainStep Next() { return DeliverNext(fixture_.spool(), peer_, {}); }
  std::vector<std::string> Calls() { return std::exchange(peer_.calls, {}); }
  void ExpectOutcome(const std::string& outcome) {
    EXPECT_EQ(fixture_.spool().waiting(), 0);
    EXPECT_THAT(fixture_.Metric(),
                HasSubstr(absl::StrCat("muster_relay_spool_outcomes_total{outcome=\"", outcome,
                                       "\"} 1\n")));
  }

  using Strings = std::vector<std::string>;

  SpoolFixture fixture_;
  FakePeer peer_;
};

TEST_F(SpoolDrainStepTest, CommittedResultLeavesTheSpool) {
  EXPECT_EQ(Next(), DrainStep::kFinished);
  EXPECT_EQ(Calls(), Strings{"deliver facts"});
  ExpectOutcome("committed");
  EXPECT_EQ(Next(), DrainStep::kNothingDue);
}

TEST_F(SpoolDrainStepTest, RefusedResultLeavesTheSpool) {
  peer_.answer = errors::RunNotFound("r");
  EXPECT_EQ(Next(), DrainStep::kFinished);
  ExpectOutcome("refused");
}

TEST_F(SpoolDrainStepTest, ErrorThatMayPassIsRetriedAfterADelay) {
  peer_.answer = absl::DeadlineExceededError("slow");
  EXPECT_EQ(Next(), DrainStep::kRequeued);
  EXPECT_EQ(Next(), DrainStep::kNothingDue);
  fixture_.clock.Advance(absl::Seconds(4));
  peer_.answer = absl::OkStatus();
  EXPECT_EQ(Next(), DrainStep::kFinished);
  ExpectOutcome("committed");
}

TEST_F(SpoolDrainStepTest, DelayThatThePeerAsksForIsKept) {
  peer_.answer = errors::TooManyUploads(1);
  const absl::Duration asked = *RetryAfterOf(peer_.answer);
  EXPECT_EQ(Next(), DrainStep::kRequeued);
  fixture_.clock.Advance(asked);
  EXPECT_EQ(Next(), DrainStep::kNothingDue);
  fixture_.clock.Advance(absl::Seconds(3));
  EXPECT_EQ(Next(), DrainStep::kRequeued);
}

TEST_F(SpoolDrainStepTest, UnavailablePeerIsReported) {
  peer_.answer = absl::UnavailableError("down");
  EXPECT_EQ(Next(), DrainStep::kPeerUnavailable);
  EXPECT_EQ(fixture_.spool().waiting(), 1);
}

TEST_F(SpoolDrainStepTest, ExpiredResultIsReported) {
  fixture_.clock.Advance(absl::Hours(25));
  EXPECT_EQ(Next(), DrainStep::kFinished);
  EXPECT_EQ(Calls(), Strings{"expired facts"});
  ExpectOutcome("expired");
}

TEST_F(SpoolDrainStepTest, LostResultIsReported) {
  EXPECT_EQ(Next(), DrainStep::kFinished);
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", Pattern(100'000)).ok());
  ASSERT_TRUE(RemoveTree(fixture_.disk, fixture_.options.folder + "/blobs").ok());
  Calls();
  EXPECT_EQ(Next(), DrainStep::kFinished);
  EXPECT_EQ(Calls(), Strings{"expired logs"});
  EXPECT_THAT(fixture_.Metric(),
              HasSubstr("muster_relay_spool_outcomes_total{outcome=\"lost\"} 1\n"));
}

TEST(FinalRefusalTest, IsAVerdictOnTheResult) {
  const auto is_final = [](absl::StatusCode code, const char* reason) {
    return IsFinalRefusal(MakeError(code, reason, "what", "do"));
  };
  using Code = absl::StatusCode;
  EXPECT_TRUE(is_final(Code::kNotFound, "RUN_NOT_FOUND"));
  EXPECT_TRUE(is_final(Code::kUnauthenticated, "INVALID_SIGNATURE"));
  EXPECT_TRUE(is_final(Code::kFailedPrecondition, "RUN_SEALED"));
  EXPECT_TRUE(is_final(Code::kPermissionDenied, "NOT_YOURS"));
  EXPECT_FALSE(is_final(Code::kPermissionDenied, "NOT_ATTACHED"));
  EXPECT_FALSE(is_final(Code::kPermissionDenied, "ROLE_NOT_ALLOWED"));
  EXPECT_FALSE(is_final(Code::kUnauthenticated, "STATEMENT_EXPIRED"));
  EXPECT_FALSE(is_final(Code::kNotFound, "UPLOAD_NOT_FOUND"));
  EXPECT_FALSE(is_final(Code::kUnavailable, "RELAY_CUT_OFF"));
  EXPECT_FALSE(IsFinalRefusal(absl::PermissionDeniedError("no reason")));
  EXPECT_FALSE(IsFinalRefusal(absl::InvalidArgumentError("no reason")));
}

}  // namespace
}  // namespace muster
