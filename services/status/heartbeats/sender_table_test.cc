#include "services/status/heartbeats/sender_table.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

class SenderTableTest : public ::testing::Test {
 protected:
  SenderTableTest() { clock_.Advance(absl::Hours(1)); }

  std::shared_ptr<SenderEntry> Add(int node) {
    const std::string name = absl::StrCat("n", node);
    SenderTable::Shard& shard = table_.ShardOf("uri", name);
    MutexLock lock(shard.mutex);
    auto entry = table_.FindOrAdd(shard, "uri", name);
    status_ = entry.status();
    return entry.ok() ? *entry : nullptr;
  }

  void Schedule(SenderEntry& entry, absl::Duration at) {
    SenderTable::Shard& shard = table_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    table_.Schedule(shard, entry, at);
  }

  void Forget(SenderEntry& entry) {
    SenderTable::Shard& shard = table_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    table_.Forget(shard, entry);
  }

  void List(SenderEntry& entry) {
    SenderTable::Shard& shard = table_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    table_.List(shard, entry);
  }

  void SetPresence(SenderEntry& entry, v1::Presence presence) {
    SenderTable::Shard& shard = table_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    table_.SetPresence(shard, entry, presence, clock_.MonotonicNow(), "why", &effects_);
  }

  void SetDoubted(SenderEntry& entry) {
    SenderTable::Shard& shard = table_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    table_.SetDoubted(shard, entry, clock_.MonotonicNow(), "why", &effects_);
  }

  // Returns a copy.
  SenderState StateOf(SenderEntry& entry) {
    SenderTable::Shard& shard = table_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    return entry.state(shard);
  }

  std::vector<std::string> Due(absl::Duration now) {
    std::vector<std::string> nodes;
    table_.Advance(now, [&](SenderTable::Shard&, SenderEntry& e) { nodes.push_back(e.node()); });
    return nodes;
  }

  FakeClock clock_;
  Metrics metrics_;
  RegistryMetrics registry_metrics_{metrics_};
  SenderTable table_{{absl::Seconds(1), absl::Seconds(10), /*target_rate=*/1, /*max_senders=*/100},
                     clock_,
                     registry_metrics_};
  SenderEffects effects_;
  absl::Status status_;
};

TEST_F(SenderTableTest, SenderIsAddedOnce) {
  const auto entry = Add(1);
  EXPECT_EQ(Add(1), entry);
  EXPECT_NE(Add(2), entry);
  EXPECT_TRUE(StateOf(*entry).listed);
}

TEST_F(SenderTableTest, SendersPastTheLimitAreRefused) {
  for (int i = 0; i < 100; ++i) ASSERT_NE(Add(i), nullptr);
  EXPECT_EQ(Add(100), nullptr);
  EXPECT_EQ(ReasonOf(status_), "TOO_MANY_SENDERS");
  Forget(*Add(0));
  EXPECT_NE(Add(100), nullptr);
}

TEST_F(SenderTableTest, PresenceIsCounted) {
  const auto entry = Add(1);
  SetPresence(*entry, v1::PRESENCE_ONLINE);
  EXPECT_EQ(table_.count(v1::PRESENCE_ONLINE), 1);
  SetPresence(*entry, v1::PRESENCE_LATE);
  EXPECT_EQ(table_.count(v1::PRESENCE_ONLINE), 0);
  EXPECT_EQ(table_.count(v1::PRESENCE_LATE), 1);
  EXPECT_TRUE(StateOf(*entry).changed);
  EXPECT_EQ(effects_.changed.size(), 2u);
  EXPECT_EQ(effects_.events.back().second.presence(), v1::PRESENCE_LATE);
}

TEST_F(SenderTableTest, ForgottenSenderThatReturnsIsCountedOnce) {
  const auto entry = Add(1);
  SetPresence(*entry, v1::PRESENCE_OFFLINE);
  Forget(*entry);
  EXPECT_EQ(table_.count(v1::PRESENCE_OFFLINE), 0);
  List(*entry);
  SetPresence(*entry, v1::PRESENCE_ONLINE);
  EXPECT_EQ(table_.count(v1::PRESENCE_OFFLINE), 0);
  EXPECT_EQ(table_.count(v1::PRESENCE_ONLINE), 1);
}

TEST_F(SenderTableTest, SenderWhosePlaceIsTakenIsNotListed) {
  const auto old = Add(1);
  SetPresence(*old, v1::PRESENCE_ONLINE);
  Forget(*old);
  const auto other = Add(1);
  List(*old);
  EXPECT_FALSE(StateOf(*old).listed);
  SetPresence(*old, v1::PRESENCE_LATE);
  EXPECT_EQ(table_.count(v1::PRESENCE_LATE), 0) << "only listed senders count";
}

TEST_F(SenderTableTest, DoubtEndsWithAKnownPresence) {
  const auto entry = Add(1);
  SetPresence(*entry, v1::PRESENCE_ONLINE);
  SetDoubted(*entry);
  SetDoubted(*entry);
  EXPECT_EQ(table_.doubted(), 1);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_UNKNOWN);
  SetPresence(*entry, v1::PRESENCE_ONLINE);
  EXPECT_EQ(table_.doubted(), 0);
  SetDoubted(*entry);
  Forget(*entry);
  EXPECT_EQ(table_.doubted(), 0);
}

TEST_F(SenderTableTest, SenderIsDueAtTheFirstTickNotBeforeItsTime) {
  const absl::Duration start = table_.started();
  const auto early = Add(1);
  const auto late = Add(2);
  Schedule(*early, start + absl::Milliseconds(2001));
  Schedule(*late, start + absl::Seconds(4));
  EXPECT_TRUE(Due(start + absl::Milliseconds(2999)).empty());
  EXPECT_EQ(Due(start + absl::Seconds(3)), (std::vector<std::string>{"n1"}));
  Forget(*late);
  EXPECT_TRUE(Due(start + absl::Minutes(1)).empty()) << "a forgotten sender is never due";
}

TEST_F(SenderTableTest, IntervalGrowsWithTheOnlineSenders) {
  EXPECT_EQ(table_.Interval(), absl::Seconds(10));
  for (int i = 0; i < 40; ++i) SetPresence(*Add(i), v1::PRESENCE_ONLINE);
  EXPECT_EQ(table_.Interval(), absl::Seconds(40));
}

}  // namespace
}  // namespace muster
