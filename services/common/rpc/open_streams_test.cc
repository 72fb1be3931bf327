#include "services/common/rpc/open_streams.h"

#include <utility>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/identity.h"

namespace muster {
namespace {

constexpr char kHeartbeats[] = "/muster.v1.HeartbeatService/StreamHeartbeats";
constexpr char kUpload[] = "/muster.v1.ResultService/Upload";

class OpenStreamsTest : public ::testing::Test {
 protected:
  Metrics metrics_;
  OpenStreams streams_{metrics_};
};

TEST_F(OpenStreamsTest, TicketCountsUntilItIsDestroyed) {
  {
    auto ticket = streams_.Enter(kHeartbeats, "a", {});
    ASSERT_TRUE(ticket.ok());
    EXPECT_EQ(streams_.Count(kHeartbeats), 1);
    const OpenStreams::Ticket moved = *std::move(ticket);
    EXPECT_EQ(streams_.Count(kHeartbeats), 1);
    EXPECT_EQ(streams_.Count(kUpload), 0);
    EXPECT_NE(metrics_.Text().find("muster_rpc_open_streams{method=\"" + std::string(kHeartbeats) +
                                   "\"} 1"),
              std::string::npos);
  }
  EXPECT_EQ(streams_.Count(kHeartbeats), 0);
}

TEST_F(OpenStreamsTest, CallerAtItsLimitIsRefusedAndOthersAreNot) {
  const StreamLimits limits{.of_caller = 1};
  auto first = streams_.Enter(kHeartbeats, "a", limits);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(ReasonOf(streams_.Enter(kHeartbeats, "a", limits).status()),
            "TOO_MANY_STREAMS_OF_CALLER");
  EXPECT_TRUE(streams_.Enter(kHeartbeats, "b", limits).ok());
  EXPECT_TRUE(streams_.Enter(kUpload, "a", limits).ok());
  EXPECT_EQ(streams_.Count(kHeartbeats), 1);
  *first = OpenStreams::Ticket();
  EXPECT_TRUE(streams_.Enter(kHeartbeats, "a", limits).ok());
}

TEST_F(OpenStreamsTest, MethodAtItsLimitRefusesEveryCaller) {
  const StreamLimits limits{.in_all = 2};
  const auto first = streams_.Enter(kHeartbeats, "a", limits);
  const auto second = streams_.Enter(kHeartbeats, "b", limits);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(ReasonOf(streams_.Enter(kHeartbeats, "c", limits).status()), "TOO_MANY_STREAMS");
  EXPECT_TRUE(streams_.Enter(kUpload, "c", limits).ok());
}

TEST_F(OpenStreamsTest, ACredentialOfManyMachinesMayHaveHalfOfAllStreams) {
  const StreamLimits limits{.in_all = 10, .of_caller = 2};
  const auto of_caller = [&](const Identity::Name& name) {
    return LimitsOf({"muster", name}, limits).of_caller;
  };
  EXPECT_EQ(of_caller(NodeIdentity{"n1"}), 2);
  EXPECT_EQ(of_caller(ServiceIdentity{ServiceRole::kGateway, "g1"}), 0);
  EXPECT_EQ(of_caller(ServiceIdentity{ServiceRole::kRelay, "r1"}), 2);
  EXPECT_EQ(of_caller(RunPluginIdentity{"r", "p"}), 5);
  EXPECT_EQ(of_caller(RunListenerIdentity{"r"}), 5);
  EXPECT_EQ(LimitsOf({"muster", RunPluginIdentity{"r", "p"}}, limits).in_all, 10);
}

}  // namespace
}  // namespace muster
