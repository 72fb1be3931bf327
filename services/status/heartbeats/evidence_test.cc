#include "services/status/heartbeats/evidence.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TcpState State(TcpState::Sent sent, bool ended_here = false) {
  TcpState state;
  state.sent = sent;
  state.ended_here = ended_here;
  return state;
}

constexpr auto kUnknown = TcpState::Sent::kUnknown;
constexpr auto kAcknowledged = TcpState::Sent::kAcknowledged;
constexpr auto kUnacknowledged = TcpState::Sent::kUnacknowledged;

TEST(EvidenceTest, OpenConnectionShowsWhetherTheMachineAcknowledges) {
  EXPECT_EQ(EvidenceFrom(State(kAcknowledged), Evidence::kNone, true, false),
            Evidence::kAcknowledging);
  EXPECT_EQ(EvidenceFrom(State(kUnacknowledged), Evidence::kAcknowledging, true, false),
            Evidence::kUnacknowledged);
  EXPECT_EQ(EvidenceFrom(State(kUnknown), Evidence::kAcknowledging, true, false),
            Evidence::kAcknowledging);
}

TEST(EvidenceTest, ConnectionThatThePeerClosedIsClosed) {
  EXPECT_EQ(EvidenceFrom(State(kUnknown), Evidence::kNone, false, false), Evidence::kClosed);
  EXPECT_EQ(EvidenceFrom(State(kUnknown), Evidence::kAcknowledging, false, false),
            Evidence::kClosed);
}

TEST(EvidenceTest, ConnectionThatTheKernelDroppedIsNotClosed) {
  EXPECT_EQ(EvidenceFrom(State(kUnknown), Evidence::kUnacknowledged, false, false),
            Evidence::kUnacknowledged);
  EXPECT_EQ(EvidenceFrom(State(kUnknown), Evidence::kNone, false, /*unanswered=*/true),
            Evidence::kUnacknowledged);
}

TEST(EvidenceTest, ConnectionThatThisSideEndedShowsWhetherTheMachineAcknowledges) {
  EXPECT_EQ(EvidenceFrom(State(kAcknowledged, true), Evidence::kNone, false, false),
            Evidence::kAcknowledging);
  EXPECT_EQ(EvidenceFrom(State(kUnknown, true), Evidence::kNone, false, false),
            Evidence::kUnacknowledged);
}

TEST(EvidenceTest, OnlyEvidenceOfTheKernelIsDescribed) {
  EXPECT_EQ(DescribeEvidence(Evidence::kClosed), "its connection was closed without a goodbye");
  EXPECT_EQ(DescribeEvidence(Evidence::kRevoked), "");
}

}  // namespace
}  // namespace muster
