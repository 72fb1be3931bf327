#include "services/status/heartbeats/evidence.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TcpState Sight(TcpState::Sent sent, bool ended_here = false) {
  TcpState sight;
  sight.sent = sent;
  sight.ended_here = ended_here;
  return sight;
}

constexpr auto kUnknown = TcpState::Sent::kUnknown;
constexpr auto kAcknowledged = TcpState::Sent::kAcknowledged;
constexpr auto kUnacknowledged = TcpState::Sent::kUnacknowledged;

TEST(EvidenceTest, OpenConnectionShowsWhetherTheMachineAcknowledges) {
  EXPECT_EQ(EvidenceFrom(Sight(kAcknowledged), Evidence::kNone, true, false),
            Evidence::kAcknowledging);
  EXPECT_EQ(EvidenceFrom(Sight(kUnacknowledged), Evidence::kAcknowledging, true, false),
            Evidence::kUnacknowledged);
  EXPECT_EQ(EvidenceFrom(Sight(kUnknown), Evidence::kAcknowledging, true, false),
            Evidence::kAcknowledging);
}

TEST(EvidenceTest, ConnectionThatThePeerClosedIsClosed) {
  EXPECT_EQ(EvidenceFrom(Sight(kUnknown), Evidence::kNone, false, false), Evidence::kClosed);
  EXPECT_EQ(EvidenceFrom(Sight(kUnknown), Evidence::kAcknowledging, false, false),
            Evidence::kClosed);
}

TEST(EvidenceTest, ConnectionThatTheKernelDroppedIsNotClosed) {
  EXPECT_EQ(EvidenceFrom(Sight(kUnknown), Evidence::kUnacknowledged, false, false),
            Evidence::kUnacknowledged);
  EXPECT_EQ(EvidenceFrom(Sight(kUnknown), Evidence::kNone, false, /*unanswered=*/true),
            Evidence::kUnacknowledged);
}

TEST(EvidenceTest, ConnectionThatThisSideEndedShowsWhetherTheMachineAcknowledges) {
  EXPECT_EQ(EvidenceFrom(Sight(kAcknowledged, true), Evidence::kNone, false, false),
            Evidence::kAcknowledging);
  EXPECT_EQ(EvidenceFrom(Sight(kUnknown, true), Evidence::kNone, false, false),
            Evidence::kUnacknowledged);
}

TEST(EvidenceTest, OnlyEvidenceOfTheKernelIsDescribed) {
  EXPECT_EQ(DescribeEvidence(Evidence::kClosed), "its connection was closed without a goodbye");
  EXPECT_EQ(DescribeEvidence(Evidence::kRestarted), "");
}

}  // namespace
}  // namespace muster
