#include "services/status/heartbeats/silence_judge.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"

namespace muster {
namespace {

using Sent = TcpState::Sent;

constexpr absl::Duration kInterval = absl::Seconds(10);

class IdleLink : public SenderLink {
 public:
  void Probe() override {}
  void End(const absl::Status&) override {}
};

// Senders on a fake clock, and a kernel that answers as the test says. Time passes in ticks of a
// second.
class SilenceJudgeTest : public ::testing::Test {
 protected:
  using Shard = SenderTable::Shard;

  // Adds a sender whose first heartbeat arrives now. Its port is 1 + `number`; behind a relay it
  // has none.
  std::shared_ptr<SenderEntry> Add(int number, const RelayState* relay = nullptr) {
    const std::string node = absl::StrCat("n", number);
    Shard& shard = senders_.ShardOf("uri", node);
    MutexLock lock(shard.mutex);
    auto entry = *senders_.FindOrAdd(shard, "uri", node);
    Connect(shard, *entry, relay == nullptr ? static_cast<uint16_t>(1 + number) : 0, relay);
    Accept(shard, *entry);
    return entry;
  }

  void Connect(Shard& shard, SenderEntry& entry, uint16_t port, const RelayState* relay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex) {
    std::shared_ptr<SenderLink> replaced;
    SenderConnection connection{link_, {}, relay};
    connection.peer.port = port;
    EXPECT_TRUE(entry.state(shard).streams.Open(1, std::move(connection), &replaced).ok());
    entry.set_relay(relay);
  }

  // Closes the first stream of the sender.
  void Close(SenderEntry& entry) {
    Shard& shard = senders_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    ASSERT_TRUE(entry.state(shard).streams.Close(1));
  }

  void SendHeartbeat(SenderEntry& entry) {
    Shard& shard = senders_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    Accept(shard, entry);
  }

  void Accept(Shard& shard, SenderEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex) {
    const absl::Duration now = clock_.MonotonicNow();
    entry.set_last_seen(now);
    entry.set_interval(kInterval);
    entry.set_evidence(Evidence::kNone);
    if (entry.presence() == v1::PRESENCE_ONLINE) return;
    SenderEffects ignored;
    senders_.SetPresence(shard, entry, v1::PRESENCE_ONLINE, now, "", &ignored);
    senders_.Schedule(shard, entry, now + entry.CheckAfter());
  }

  void Tick() {
    SenderEffects effects;
    judge_.Tick(&effects);
    probes_ += effects.probes.size();
    for (const auto& [node, event] : effects.events) details_[node].push_back(event.detail());
  }

  // `sending` send a heartbeat every 10 s.
  void Pass(int seconds, const std::vector<std::shared_ptr<SenderEntry>>& sending = {}) {
    for (int i = 1; i <= seconds; ++i) {
      clock_.Advance(absl::Seconds(1));
      Tick();
      if (i % 10 != 0) continue;
      for (const auto& entry : sending) SendHeartbeat(*entry);
    }
  }

  std::vector<std::shared_ptr<SenderEntry>> AddMany(int from, int to) {
    std::vector<std::shared_ptr<SenderEntry>> added;
    for (int i = from; i < to; ++i) added.push_back(Add(i));
    return added;
  }

  std::vector<TcpState> Answer(const std::vector<TcpPeer>& peers) {
    std::vector<TcpState> states;
    for (const TcpPeer& peer : peers) {
      asked_.push_back(peer.port);
      states.push_back(kernel_[peer.port]);
    }
    if (on_query_) on_query_();
    if (!kernel_answers_) states.clear();
    return states;
  }

  FakeClock clock_;
  Metrics metrics_;
  RegistryMetrics registry_metrics_{metrics_};
  SenderTable senders_{{absl::Seconds(1), kInterval, /*target_rate=*/1000, /*max_senders=*/100},
                       clock_,
                       registry_metrics_};
  RelayTable relays_{{/*doubt_limit=*/absl::Minutes(10), /*return_grace=*/absl::Seconds(60)}};
  std::map<uint16_t, TcpState> kernel_;
  bool kernel_answers_ = true;
  std::vector<uint16_t> asked_;  // ports
  std::function<void()> on_query_;
  SilenceJudge judge_{{.tick = absl::Seconds(1),
                       .lost_after = absl::Minutes(3),
                       .forget_after = absl::Hours(24),
                       .doubt = {.grace = absl::Seconds(90), .limit = absl::Minutes(10)}},
                      clock_,
                      senders_,
                      relays_,
                      [this](const std::vector<TcpPeer>& peers) { return Answer(peers); },
                      registry_metrics_};
  const std::shared_ptr<IdleLink> link_ = std::make_shared<IdleLink>();
  size_t probes_ = 0;
  std::map<std::string, std::vector<std::string>> details_;  // of events, by node
};

TEST_F(SilenceJudgeTest, SilentSenderIsLateThenSuspectThenLost) {
  Tick();
  const auto entry = Add(1);
  Pass(19);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_ONLINE);
  Pass(1);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(probes_, 1u);
  Pass(10);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_SUSPECT);
  Pass(150);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(details_["n1"],
            (std::vector<std::string>{"no heartbeat for 20s", "no heartbeat for 30s",
                                      "no heartbeat for 3m"}));
}

TEST_F(SilenceJudgeTest, SenderThatSendsHeartbeatsStaysOnline) {
  Tick();
  const auto entry = Add(1);
  Pass(600, {entry});
  EXPECT_EQ(entry->presence(), v1::PRESENCE_ONLINE);
  EXPECT_TRUE(details_.empty());
  EXPECT_TRUE(asked_.empty());
}

TEST_F(SilenceJudgeTest, LostSenderIsForgotten) {
  Tick();
  const auto entry = Add(1);
  Pass(180);
  ASSERT_EQ(senders_.count(v1::PRESENCE_LOST), 1);
  clock_.Advance(absl::Hours(24));
  Tick();
  EXPECT_EQ(senders_.count(v1::PRESENCE_LOST), 0);
}

TEST_F(SilenceJudgeTest, ConnectionIsCheckedBeforeItsSenderIsLate) {
  Tick();
  const auto entry = Add(1);
  kernel_[2].sent = Sent::kUnacknowledged;
  Pass(13);
  EXPECT_EQ(asked_, std::vector<uint16_t>{2});
  EXPECT_EQ(entry->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(entry->evidence(), Evidence::kNone);
  // The kernel has dropped the connection: the earlier answer is the evidence.
  kernel_.clear();
  judge_.AddClosed(entry);
  Close(*entry);
  Pass(1);
  EXPECT_EQ(entry->evidence(), Evidence::kUnacknowledged);
}

TEST_F(SilenceJudgeTest, ClosedConnectionIsExaminedAfterItHasSettled) {
  Tick();
  const auto entry = Add(1);
  Close(*entry);
  judge_.AddClosed(entry);
  clock_.Advance(absl::Milliseconds(499));
  Tick();
  EXPECT_TRUE(asked_.empty());
  clock_.Advance(absl::Milliseconds(1));
  Tick();
  EXPECT_EQ(entry->evidence(), Evidence::kClosed);
  EXPECT_EQ(details_["n1"].back(), "its connection was closed without a goodbye");
}

TEST_F(SilenceJudgeTest, AnswerForAnEarlierConnectionIsNoEvidence) {
  Tick();
  const auto entry = Add(1);
  kernel_[2].sent = Sent::kUnacknowledged;
  Pass(19);
  // The sender connects again while the kernel is asked.
  on_query_ = [&] {
    Shard& shard = senders_.ShardOf(*entry);
    MutexLock lock(shard.mutex);
    Connect(shard, *entry, 77, nullptr);
  };
  Pass(1);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(entry->evidence(), Evidence::kNone);
}

TEST_F(SilenceJudgeTest, KernelThatDoesNotAnswerGivesNoEvidence) {
  Tick();
  kernel_answers_ = false;
  kernel_[2].sent = Sent::kUnacknowledged;
  const auto entry = Add(1);
  Pass(180);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(entry->evidence(), Evidence::kNone);
}

TEST_F(SilenceJudgeTest, LateTickHoldsAllJudgement) {
  Tick();
  const auto entry = Add(1);
  clock_.Advance(absl::Minutes(5));
  Tick();
  EXPECT_EQ(entry->presence(), v1::PRESENCE_UNKNOWN);
  EXPECT_NE(judge_.Doubt().find("held up for 4m59s"), std::string::npos) << judge_.Doubt();
  Pass(89);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_UNKNOWN);
  Pass(1);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(judge_.Doubt(), "");
}

TEST_F(SilenceJudgeTest, ManySilentSendersAreDoubtedUntilTheLimit) {
  Tick();
  const auto silent = AddMany(0, 6);
  const auto sending = AddMany(6, 20);
  Pass(300, sending);
  for (const auto& entry : silent) {
    EXPECT_EQ(entry->presence(), v1::PRESENCE_UNKNOWN) << entry->node();
    EXPECT_TRUE(entry->doubted()) << entry->node();
  }
  EXPECT_EQ(sending[0]->presence(), v1::PRESENCE_ONLINE);
  EXPECT_NE(judge_.Doubt().find("6 of 20"), std::string::npos) << judge_.Doubt();
  EXPECT_EQ(senders_.doubted(), 6);
  Pass(340, sending);
  EXPECT_EQ(silent[0]->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(judge_.Doubt(), "");
  EXPECT_EQ(senders_.doubted(), 0);
}

TEST_F(SilenceJudgeTest, SendersThatClosedTheirConnectionAreNotDoubted) {
  Tick();
  const auto silent = AddMany(0, 6);
  const auto sending = AddMany(6, 20);
  for (const auto& entry : silent) {
    Close(*entry);
    judge_.AddClosed(entry);
  }
  Pass(200, sending);
  EXPECT_EQ(silent[0]->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(judge_.Doubt(), "");
}

TEST_F(SilenceJudgeTest, SenderOfADisconnectedRelayIsDoubtedUntilTheLimit) {
  Tick();
  RelayState* const relay = *relays_.Open("r1", clock_.MonotonicNow());
  const auto entry = Add(1, relay);
  relays_.Close(relay, clock_.MonotonicNow());
  Pass(30);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_UNKNOWN);
  EXPECT_TRUE(entry->doubted());
  EXPECT_EQ(judge_.Doubt(), "") << "other senders are judged";
  ASSERT_EQ(relays_.Lost(clock_.MonotonicNow()).size(), 1u);
  Pass(580);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_LOST);
  EXPECT_FALSE(entry->doubted());
}

TEST_F(SilenceJudgeTest, SenderOfAConnectedRelayIsJudged) {
  Tick();
  RelayState* const relay = *relays_.Open("r1", clock_.MonotonicNow());
  kernel_[0].sent = Sent::kUnacknowledged;  // the connection of the relay
  const auto entry = Add(1, relay);
  for (int i = 0; i < 90; i += 5) {
    relays_.HandleMessage(relay, clock_.MonotonicNow(), kInterval);
    Pass(5);
  }
  EXPECT_EQ(entry->presence(), v1::PRESENCE_SUSPECT);
  EXPECT_EQ(details_["n1"].front(), "no heartbeat for 20s");
  EXPECT_EQ(entry->evidence(), Evidence::kNone);
}

// A relay that is stopped keeps its connection until the keepalive ends it.
TEST_F(SilenceJudgeTest, SenderOfASilentRelayIsDoubtedUntilTheRelayReturns) {
  Tick();
  RelayState* const relay = *relays_.Open("r1", clock_.MonotonicNow());
  relays_.HandleMessage(relay, clock_.MonotonicNow(), kInterval);
  const auto entry = Add(1, relay);
  Pass(200);
  EXPECT_EQ(entry->presence(), v1::PRESENCE_UNKNOWN);
  EXPECT_TRUE(entry->doubted());
  EXPECT_EQ(judge_.Doubt(), "") << "other senders are judged";
  ASSERT_EQ(relays_.Lost(clock_.MonotonicNow()).size(), 1u);
  // The relay returns without the sender.
  for (int i = 0; i < 70; i += 5) {
    EXPECT_EQ(entry->doubted(), i < 60) << i;
    relays_.HandleMessage(relay, clock_.MonotonicNow(), kInterval);
    Pass(5);
  }
  EXPECT_EQ(entry->presence(), v1::PRESENCE_LOST);
}

}  // namespace
}  // namespace muster
