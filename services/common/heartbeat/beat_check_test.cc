#include "services/common/heartbeat/beat_check.h"

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
  v1::StreamHeartbeatsRequest beat;
  beat.set_instance_id("i1");
  return beat;
}

TEST(BeatCheckTest, NodeDefaultsToTheCertificate) {
  EXPECT_EQ(*NodeOf(kNode, First()), "n1");
  EXPECT_EQ(*NodeOf(kRunNode, First()), "n1");
  EXPECT_EQ(ReasonOf(NodeOf(kRunPlugin, First()).status()), "INVALID_HEARTBEAT");
  v1::StreamHeartbeatsRequest named = First();
  named.set_node("n7");
  EXPECT_EQ(*NodeOf(kRunPlugin, named), "n7");
  named.set_node("<script>");
  EXPECT_EQ(ReasonOf(NodeOf(kRunPlugin, named).status()), "INVALID_NAME");
}

TEST(BeatCheckTest, InstanceIdIsRequiredAndLimited) {
  v1::StreamHeartbeatsRequest beat = First();
  beat.set_instance_id("");
  EXPECT_EQ(ReasonOf(NodeOf(kNode, beat).status()), "INVALID_HEARTBEAT");
  beat.set_instance_id(std::string(65, 'x'));
  EXPECT_EQ(ReasonOf(NodeOf(kNode, beat).status()), "INVALID_HEARTBEAT");
  beat.set_instance_id(std::string(64, 'x'));
  EXPECT_TRUE(NodeOf(kNode, beat).ok());
  beat.set_boot_id(std::string(65, 'x'));
  EXPECT_EQ(ReasonOf(NodeOf(kNode, beat).status()), "INVALID_HEARTBEAT");
}

TEST(BeatCheckTest, NumbersOutOfRangeAreRefused) {
  EXPECT_TRUE(CheckBeat(First(), "n1", "i1").ok());
  v1::StreamHeartbeatsRequest beat = First();
  beat.set_sequence(-1);
  EXPECT_EQ(ReasonOf(CheckBeat(beat, "n1", "i1")), "INVALID_HEARTBEAT");
  for (const int64_t seconds : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    beat = First();
    beat.mutable_uptime()->set_seconds(seconds);
    EXPECT_EQ(ReasonOf(CheckBeat(beat, "n1", "i1")), "INVALID_HEARTBEAT") << seconds;
  }
  beat = First();
  for (int i = 0; i < 1000; ++i) beat.add_activities();
  EXPECT_TRUE(CheckBeat(beat, "n1", "i1").ok());
  beat.add_activities();
  EXPECT_EQ(ReasonOf(CheckBeat(beat, "n1", "i1")), "INVALID_HEARTBEAT");
}

TEST(BeatCheckTest, ChangedNodeOrInstanceIsRefused) {
  v1::StreamHeartbeatsRequest beat;
  EXPECT_TRUE(CheckBeat(beat, "n1", "i1").ok());
  beat.set_node("n2");
  EXPECT_EQ(ReasonOf(CheckBeat(beat, "n1", "i1")), "INVALID_HEARTBEAT");
  beat.set_node("n1");
  beat.set_instance_id("i2");
  EXPECT_EQ(ReasonOf(CheckBeat(beat, "n1", "i1")), "INVALID_HEARTBEAT");
}

TEST(BeatCheckTest, PairIsCompletedFromTheCertificate) {
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

TEST(BeatCheckTest, TextsAreCutAndMadePrintable) {
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
  CleanActivity(&activity);
  EXPECT_EQ(activity.message().size(), 1024);
  EXPECT_EQ(activity.fault().message().size(), 1024);
  EXPECT_EQ(activity.fault().address().size(), 300);
  EXPECT_EQ(activity.fault().next_step().size(), 1024);
  EXPECT_EQ(activity.fault().check(), v1::Fault::CHECK_UNSPECIFIED);
  EXPECT_EQ(activity.phase(), v1::PHASE_UNSPECIFIED);
}

TEST(BeatCheckTest, ClockInTheFutureIsAccepted) {
  const absl::Time now = absl::FromUnixSeconds(1'750'000'000);
  v1::StreamHeartbeatsRequest beat;
  EXPECT_EQ(ClockSkew(beat, now), absl::ZeroDuration());
  beat.mutable_time()->set_seconds(1'750'000'090);
  EXPECT_EQ(ClockSkew(beat, now), absl::Seconds(90));
  beat.mutable_time()->set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_LE(ClockSkew(beat, now), absl::Hours(24 * 366 * 100));
  beat.mutable_time()->set_seconds(std::numeric_limits<int64_t>::min());
  EXPECT_GE(ClockSkew(beat, now), -absl::Hours(24 * 366 * 100));
}

}  // namespace
}  // namespace muster
