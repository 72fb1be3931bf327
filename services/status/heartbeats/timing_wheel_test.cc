#include "services/status/heartbeats/timing_wheel.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

struct Item : WheelNode {
  int64_t fell = -1;
};

TEST(TimingWheelTest, NodeIsDueOnceAtItsTick) {
  TimingWheel wheel;
  const std::vector<int64_t> dues = {1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 8191, 262'143};
  std::vector<Item> items(dues.size());
  for (size_t i = 0; i < dues.size(); ++i) wheel.Add(items[i], dues[i]);
  for (int64_t tick = 1; tick <= 262'200; ++tick) {
    wheel.Advance(tick, [&](WheelNode& node) {
      auto& item = static_cast<Item&>(node);
      EXPECT_EQ(item.fell, -1);
      item.fell = tick;
    });
  }
  for (size_t i = 0; i < dues.size(); ++i) EXPECT_EQ(items[i].fell, dues[i]);
}

TEST(TimingWheelTest, NodeIsDueAtItsTickFromAnyTick) {
  TimingWheel wheel;
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> distance(1, 20'000);
  std::vector<Item> items(3000);
  int64_t now = 0;
  size_t added = 0;
  size_t fell = 0;
  while (fell < items.size()) {
    for (int i = 0; i < 3 && added < items.size(); ++i) {
      wheel.Add(items[added++], now + distance(random));
    }
    now += distance(random) % 50 + 1;
    wheel.Advance(now, [&](WheelNode& node) {
      EXPECT_EQ(node.due, wheel.now());
      ++fell;
    });
  }
}

TEST(TimingWheelTest, NodePastTheOutermostWheelIsDueAtItsTick) {
  TimingWheel wheel;
  Item item;
  wheel.Add(item, 600'000);
  wheel.Advance(599'999, [](WheelNode&) { ADD_FAILURE() << "too early"; });
  bool fell = false;
  wheel.Advance(600'000, [&](WheelNode&) { fell = true; });
  EXPECT_TRUE(fell);
}

TEST(TimingWheelTest, MovedAndRemovedNodesFollowTheLastCall) {
  TimingWheel wheel;
  Item moved;
  Item removed;
  wheel.Add(moved, 10);
  wheel.Add(removed, 10);
  wheel.Add(moved, 100);
  TimingWheel::Remove(removed);
  TimingWheel::Remove(removed);
  wheel.Advance(99, [](WheelNode&) { ADD_FAILURE() << "too early"; });
  std::vector<WheelNode*> fell;
  wheel.Advance(100, [&](WheelNode& node) { fell.push_back(&node); });
  EXPECT_EQ(fell, std::vector<WheelNode*>{&moved});
}

TEST(TimingWheelTest, PastTickIsDueAtTheNextOne) {
  TimingWheel wheel;
  wheel.Advance(50, [](WheelNode&) {});
  Item item;
  wheel.Add(item, 3);
  int fell = 0;
  wheel.Advance(52, [&](WheelNode& node) {
    if (++fell == 1) wheel.Add(node, 1);
  });
  EXPECT_EQ(fell, 2);
}

}  // namespace
}  // namespace muster
