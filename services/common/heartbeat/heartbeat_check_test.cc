#include "services/common/heartbeat/heartbeat_check.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

constexpr char kRun[] = "0123456789abcdef";
const Identity kNode = {"f", NodeIdentity{"n1"}};
const Identity kRunNode = {"f", RunNodeIdentity{kRun, "p", "n1"}};
const Identity kRunPlugin = {"f", RunPluginIdentity{kRun, "p"}};

v1::StreamHeartbeatsRequest First() {
  v1::StreamHeartbeatsRequest heartbeat;
  heartbeat.set_instance_id("i1");
  return heartbeat;
}

TEST(HeartbeatCheckTest, NodeDefaultsToTheCertificate) {
  EXPECT_EQ(*NodeOf(kNode, First()), "n1");
  EXPECT_EQ(*NodeOf(kRunNode, First()), "n1");
  EXPECT_EQ(ReasonOf(NodeOf(kRunPlugin, First()).status()), "INVALID_HEARTBEAT");
  v1::StreamHeartbeatsRequest named = First();
  named.set_node("n7");
  EXPECT_EQ(*NodeOf(kRunPlugin, named), "n7");
  named.set_node("<script>");
  EXPECT_EQ(ReasonOf(NodeOf(kRunPlugin, named).status()), "INVALID_NAME");
}

TEST(HeartbeatCheckTest, InstanceIdIsRequiredAndLimited) {
  v1::StreamHeartbeatsRequest heartbeat = First();
  heartbeat.set_instance_id("");
  EXPECT_EQ(ReasonOf(NodeOf(kNode, heartbeat).status()), "INVALID_HEARTBEAT");
  heartbeat.set_instance_id(std::string(65, 'x'));
  EXPECT_EQ(ReasonOf(NodeOf(kNode, heartbeat).status()), "INVALID_HEARTBEAT");
  heartbeat.set_instance_id(std::string(64, 'x'));
  EXPECT_TRUE(NodeOf(kNode, heartbeat).ok());
  heartbeat.set_boot_id(std::string(65, 'x'));
  EXPECT_EQ(ReasonOf(NodeOf(kNode, heartbeat).status()), "INVALID_HEARTBEAT");
}

TEST(HeartbeatCheckTest, NumbersOutOfRangeAreRefused) {
  EXPECT_TRUE(CheckHeartbeat(First(), "n1", "i1").ok());
  v1::StreamHeartbeatsRequest heartbeat = First();
  heartbeat.set_sequence(-1);
  EXPECT_EQ(ReasonOf(CheckHeartbeat(heartbeat, "n1", "i1")), "INVALID_HEARTBEAT");
  for (const int64_t seconds : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    heartbeat = First();
    heartbeat.mutable_uptime()->set_seconds(seconds);
    EXPECT_EQ(ReasonOf(CheckHeartbeat(heartbeat, "n1", "i1")), "INVALID_HEARTBEAT") << seconds;
  }
  heartbeat = First();
  for (int i = 0; i < 1000; ++i) heartbeat.add_activities();
  EXPECT_TRUE(CheckHeartbeat(heartbeat, "n1", "i1").ok());
  heartbeat.add_activities();
  EXPECT_EQ(ReasonOf(CheckHeartbeat(heartbeat, "n1", "i1")), "INVALID_HEARTBEAT");
}

TEST(HeartbeatCheckTest, ChangedNodeOrInstanceIsRefused) {
  v1::StreamHeartbeatsRequest heartbeat;
  EXPECT_TRUE(CheckHeartbeat(heartbeat, "n1", "i1").ok());
  heartbeat.set_node("n2");
  EXPECT_EQ(ReasonOf(CheckHeartbeat(heartbeat, "n1", "i1")), "INVALID_HEARTBEAT");
  heartbeat.set_node("n1");
  heartbeat.set_instance_id("i2");
  EXPECT_EQ(ReasonOf(CheckHeartbeat(heartbeat, "n1", "i1")), "INVALID_HEARTBEAT");
}

TEST(HeartbeatCheckTest, PairIsCompletedFromTheCertificate) {
  v1::ResultKey key;
  for (const Identity& identity : {kRunNode, kRunPlugin}) {
    const auto pair = PairOf(identity, "n1", key);
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ(pair->run(), kRun);
    EXPECT_EQ(pair->plugin(), "p");
    EXPECT_EQ(pair->node(), "n1");
  }
  EXPECT_EQ(ReasonOf(PairOf(kNode, "n1", key).status()), "INVALID_HEARTBEAT");
  key.set_run(kRun);
  key.set_plugin("q");
  EXPECT_EQ(PairOf(kNode, "n1", key)->plugin(), "q");
  key.set_node("n2");
  EXPECT_EQ(ReasonOf(PairOf(kNode, "n1", key).status()), "INVALID_HEARTBEAT");
}

TEST(HeartbeatCheckTest, TextsAreCutAndMadePrintable) {
  EXPECT_EQ(CleanText("plain", 10), "plain");
  EXPECT_EQ(CleanText("äöü", 2), "äö");
  EXPECT_EQ(CleanText("a\x1b[31m\nb\xff", 100), "a [31m b ");
  v1::Activity activity;
  activity.set_message(std::string(1 << 20, 'x'));
  activity.mutable_fault()->set_message(std::string(5000, 'x'));
  activity.mutable_fault()->set_address(std::string(5000, 'x'));
  activity.mutable_fault()->set_next_step(std::string(5000, 'x'));
  activity.mutable_fault()->set_check(static_cast<v1::Fault::Check>(99));
  activity.set_phase(static_cast<v1::Phase>(99));
  activity.mutable_progress()->set_message(std::string(1 << 20, 'x'));
  activity.mutable_progress()->add_errors(std::string(1 << 20, 'x'));
  activity.mutable_progress()->mutable_key()->set_run(std::string(1 << 20, 'x'));
  CleanActivity(&activity);
  EXPECT_EQ(activity.message().size(), 1024);
  EXPECT_EQ(activity.fault().message().size(), 1024);
  EXPECT_EQ(activity.fault().address().size(), 300);
  EXPECT_EQ(activity.fault().next_step().size(), 1024);
  EXPECT_EQ(activity.fault().check(), v1::Fault::CHECK_UNSPECIFIED);
  EXPECT_EQ(activity.phase(), v1::PHASE_UNSPECIFIED);
  EXPECT_LT(activity.progress().ByteSizeLong(), 6000u);
}

TEST(HeartbeatCheckTest, ClockInTheFutureIsAccepted) {
  const absl::Time now = absl::FromUnixSeconds(1'750'000'000);
  v1::StreamHeartbeatsRequest heartbeat;
  EXPECT_EQ(ClockSkew(heartbeat, now), absl::ZeroDuration());
  heartbeat.mutable_time()->set_seconds(1'750'000'090);
  EXPECT_EQ(ClockSkew(heartbeat, now), absl::Seconds(90));
  heartbeat.mutable_time()->set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_LE(ClockSkew(heartbeat, now), absl::Hours(24 * 366 * 100));
  heartbeat.mutable_time()->set_seconds(std::numeric_limits<int64_t>::min());
  EXPECT_GE(ClockSkew(heartbeat, now), -absl::Hours(24 * 366 * 100));
}

}  // namespace
}  // namespace muster
