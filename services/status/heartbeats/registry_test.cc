#include "services/status/heartbeats/registry.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

using Sent = TcpSight::Sent;

class Listener : public BeatListener {
 public:
  absl::Status Took(const v1::ResultKey&, const std::shared_ptr<const Sender>&,
                    const v1::Activity&) override {
    return absl::OkStatus();
  }
  void PresenceChanged(const std::shared_ptr<const Sender>& sender) override {
    seen.push_back(sender->presence());
  }
  std::vector<v1::Presence> seen;
};

class Journal : public NodeJournal {
 public:
  void Happened(const std::string& node, v1::NodeEvent event) override {
    details[node].push_back(event.detail());
  }
  std::map<std::string, std::vector<std::string>> details;
};

class Line : public BeatLine {
 public:
  void Probe() override { ++probes; }
  void End(const absl::Status& why) override { ended = why; }
  int probes = 0;
  absl::Status ended;
};

// Time passes in ticks of a second; the kernel says what the test wants.
class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() { Restart(); }

  void Restart(const std::vector<SenderRecord>& records = {}) {
    registry_.reset();
    metrics_ = std::make_unique<Metrics>();
    registry_ = std::make_unique<Registry>(
        options_, clock_, listener_, journal_,
        [this](const std::vector<TcpPeer>& peers) {
          std::vector<TcpSight> sights;
          for (const TcpPeer& peer : peers) sights.push_back(sights_[peer.port]);
          return sights;
        },
        *metrics_);
    registry_->Restore(records);
  }

  struct Stream {
    std::shared_ptr<Line> line;
    Registry::Seat seat;
    std::shared_ptr<const Sender> sender;
    int64_t sequence = 0;
  };

  absl::StatusOr<Stream> TryOpen(int node, const std::string& instance = "i1",
                                 absl::Duration uptime = absl::ZeroDuration()) {
    Stream stream;
    stream.line = std::make_shared<Line>();
    TcpPeer peer;
    peer.port = static_cast<uint16_t>(node + 1);
    auto seat = registry_->Open(
        {absl::StrCat("spiffe://f/node/n", node), absl::StrCat("n", node), instance, "b", uptime},
        stream.line, peer);
    if (!seat.ok()) return seat.status();
    stream.seat = *seat;
    stream.sender = seat->sender();
    return stream;
  }

  // A stream that has beaten once.
  Stream Open(int node, const std::string& instance = "i1",
              absl::Duration uptime = absl::ZeroDuration()) {
    auto stream = TryOpen(node, instance, uptime);
    EXPECT_TRUE(stream.ok()) << stream.status();
    Beat(*stream);
    return *std::move(stream);
  }

  Registry::Answer Beat(Stream& stream) {
    return registry_->Beat(stream.seat, ++stream.sequence, absl::ZeroDuration());
  }

  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(absl::Seconds(1));
      registry_->Tick();
    }
  }

  // Time passes while these go on beating every 10 s.
  void PassBeating(int seconds, std::vector<Stream*> streams) {
    for (int i = 1; i <= seconds; ++i) {
      Pass(1);
      if (i % 10 != 0) continue;
      for (Stream* stream : streams) Beat(*stream);
    }
  }

  RegistryOptions options_;
  FakeClock clock_;
  Listener listener_;
  Journal journal_;
  std::map<uint16_t, TcpSight> sights_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Registry> registry_;
};

TEST_F(RegistryTest, WhoFallsSilentIsLateThenSuspectThenLost) {
  Stream stream = Open(1);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_ONLINE);
  Pass(19);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(stream.line->probes, 0);
  Pass(1);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(stream.line->probes, 1);
  Pass(9);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LATE);
  Pass(1);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_SUSPECT);
  Pass(149);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_SUSPECT);
  Pass(1);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(stream.sender->presence_since(), clock_.MonotonicNow());
  EXPECT_EQ(listener_.seen, (std::vector<v1::Presence>{v1::PRESENCE_ONLINE, v1::PRESENCE_LATE,
                                                       v1::PRESENCE_SUSPECT, v1::PRESENCE_LOST}));
  EXPECT_EQ(journal_.details["n1"],
            (std::vector<std::string>{"first heartbeat", "no heartbeat for 20s",
                                      "no heartbeat for 30s", "no heartbeat for 3m"}));
}

TEST_F(RegistryTest, WhoBeatsStaysAndWhoReturnsIsOnline) {
  Stream stream = Open(1);
  PassBeating(600, {&stream});
  EXPECT_EQ(listener_.seen, std::vector<v1::Presence>{v1::PRESENCE_ONLINE});
  Pass(190);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LOST);
  Beat(stream);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(stream.sender->last_seen(), clock_.MonotonicNow());
  EXPECT_EQ(journal_.details["n1"].back(), "heard again after 3m10s");
  Pass(20);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LATE);
}

TEST_F(RegistryTest, WhoSaysGoodbyeIsNotMissed) {
  Stream stream = Open(1);
  registry_->Goodbye(stream.seat);
  registry_->Closed(stream.seat, true);
  Pass(300);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_OFFLINE);
  EXPECT_EQ(stream.sender->evidence(), Evidence::kNone);
}

TEST_F(RegistryTest, TheKernelTellsWhatSilenceMeans) {
  Stream stopped = Open(1);
  Stream cut = Open(2);
  Stream killed = Open(3);
  sights_[2].sent = Sent::kAcknowledged;
  sights_[3].sent = Sent::kWaiting;
  registry_->Closed(killed.seat, true);
  Pass(1);
  EXPECT_EQ(killed.sender->evidence(), Evidence::kClosed);
  EXPECT_EQ(killed.sender->presence(), v1::PRESENCE_ONLINE);
  Pass(19);
  EXPECT_EQ(stopped.sender->presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(stopped.sender->evidence(), Evidence::kAcknowledging);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kNone);
  sights_[3].sent = Sent::kUnacknowledged;
  Pass(1);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kUnacknowledged);
  EXPECT_EQ(killed.sender->evidence(), Evidence::kClosed);
  Beat(cut);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kNone);
}

TEST_F(RegistryTest, AConnectionThatTheKernelGaveUpIsNoCrash) {
  Stream cut = Open(1);
  sights_[2].sent = Sent::kUnacknowledged;
  Pass(13);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kNone);  // it is not even late
  sights_[2] = {};
  registry_->Closed(cut.seat, true);
  Pass(1);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kUnacknowledged);
}

TEST_F(RegistryTest, AConnectionThatWeEndedForSilenceIsNoCrash) {
  Stream stopped = Open(1);
  sights_[2] = {Sent::kAcknowledged, /*ended_here=*/true};
  registry_->Closed(stopped.seat, true);
  Pass(1);
  EXPECT_EQ(stopped.sender->evidence(), Evidence::kAcknowledging);
}

TEST_F(RegistryTest, AnOrderlyEndOfOursIsNoEvidence) {
  Stream stream = Open(1);
  registry_->Closed(stream.seat, false);
  Pass(25);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(stream.sender->evidence(), Evidence::kNone);
  EXPECT_EQ(stream.line->probes, 0);
}

TEST_F(RegistryTest, BeatsOutOfOrderCountForNothing) {
  Stream stream = Open(1);
  Registry::Answer answer;
  EXPECT_TRUE(registry_->IsNews(stream.seat, 2, &answer));
  registry_->Beat(stream.seat, 7, absl::ZeroDuration());
  EXPECT_FALSE(registry_->IsNews(stream.seat, 7, &answer));
  EXPECT_EQ(answer.sequence, 7);
  EXPECT_FALSE(registry_->IsNews(stream.seat, 3, &answer));
  EXPECT_NE(metrics_->Text().find("muster_heartbeats_total{result=\"out_of_order\"} 2"),
            std::string::npos);
  // Over a new connection of the same process as well; a new process begins anew.
  Stream again = *TryOpen(1);
  EXPECT_FALSE(registry_->IsNews(again.seat, 7, &answer));
  Stream fresh = *TryOpen(1, "i2");
  EXPECT_TRUE(registry_->IsNews(fresh.seat, 0, &answer));
}

TEST_F(RegistryTest, ANewStreamOfTheSameProcessTakesThePlace) {
  Stream old = Open(1);
  Stream fresh = Open(1);
  EXPECT_EQ(old.sender, fresh.sender);
  EXPECT_EQ(old.line->ended.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(fresh.sender->double_agent());
  registry_->Closed(old.seat, true);  // too late to matter
  Pass(2);
  EXPECT_EQ(fresh.sender->evidence(), Evidence::kNone);
}

TEST_F(RegistryTest, OfTwoProcessesTheOlderIsTold) {
  Stream old = Open(1, "i1", absl::Seconds(100));
  Stream young = Open(1, "i2", absl::Seconds(5));
  EXPECT_EQ(ReasonOf(old.line->ended), "DOUBLE_AGENT");
  EXPECT_TRUE(young.sender->double_agent());
  EXPECT_EQ(young.sender->evidence(), Evidence::kNone);
  // The older comes back, and is the older still.
  EXPECT_EQ(ReasonOf(TryOpen(1, "i1", absl::Seconds(101)).status()), "DOUBLE_AGENT");
  EXPECT_TRUE(young.line->ended.ok());
  EXPECT_EQ(journal_.details["n1"].size(), 3);
  PassBeating(179, {&young});
  EXPECT_TRUE(young.sender->double_agent());
  PassBeating(15, {&young});
  EXPECT_FALSE(young.sender->double_agent());
}

TEST_F(RegistryTest, ABeatOfAStreamThatLostItsPlaceCountsForNothing) {
  Stream old = Open(1, "i1");
  Stream young = Open(1, "i2");
  Pass(5);
  Beat(old);
  EXPECT_EQ(young.sender->last_seen(), clock_.MonotonicNow() - absl::Seconds(5));
}

TEST_F(RegistryTest, AProcessThatTookOverFromADeadOneIsARestart) {
  Stream old = Open(1, "i1");
  registry_->Closed(old.seat, true);
  Pass(3);
  Stream fresh = Open(1, "i2");
  EXPECT_EQ(fresh.sender->evidence(), Evidence::kRestarted);
  EXPECT_FALSE(fresh.sender->double_agent());
  Beat(fresh);
  EXPECT_EQ(fresh.sender->evidence(), Evidence::kRestarted);
  // One that said goodbye may come back as it likes.
  registry_->Goodbye(fresh.seat);
  EXPECT_EQ(Open(1, "i3").sender->evidence(), Evidence::kNone);
}

TEST_F(RegistryTest, TheIntervalGrowsWithTheNumberOfSenders) {
  options_.target_rate = 5;
  Restart();
  std::vector<Stream> streams;
  for (int i = 0; i < 100; ++i) streams.push_back(Open(i));
  EXPECT_EQ(registry_->Interval(), absl::Seconds(20));
  EXPECT_EQ(Beat(streams[0]).interval, absl::Seconds(20));
  Pass(39);
  EXPECT_EQ(streams[0].sender->presence(), v1::PRESENCE_ONLINE);
}

TEST_F(RegistryTest, WhenManyFallSilentNobodyIsJudged) {
  std::vector<Stream> streams;
  for (int i = 0; i < 20; ++i) streams.push_back(Open(i));
  std::vector<Stream*> there;
  for (int i = 6; i < 20; ++i) there.push_back(&streams[static_cast<size_t>(i)]);
  // They do not all fall due at once: the first are called late before they are many.
  for (int i = 0; i < 3; ++i) Beat(streams[static_cast<size_t>(i)]);
  Pass(1);
  for (int i = 3; i < 6; ++i) Beat(streams[static_cast<size_t>(i)]);
  PassBeating(200, there);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(streams[static_cast<size_t>(i)].sender->presence(), v1::PRESENCE_UNKNOWN) << i;
    EXPECT_TRUE(streams[static_cast<size_t>(i)].sender->doubted()) << i;
  }
  EXPECT_EQ(streams[6].sender->presence(), v1::PRESENCE_ONLINE);
  EXPECT_NE(registry_->doubt().find("6 of 20"), std::string::npos) << registry_->doubt();
  for (int i = 0; i < 5; ++i) Beat(streams[static_cast<size_t>(i)]);
  there = {};
  for (int i = 0; i < 20; ++i) {
    if (i != 5) there.push_back(&streams[static_cast<size_t>(i)]);
  }
  PassBeating(6, there);
  EXPECT_EQ(registry_->doubt(), "");
  EXPECT_FALSE(streams[0].sender->doubted());
  EXPECT_EQ(streams[0].sender->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(streams[5].sender->presence(), v1::PRESENCE_LOST);
  EXPECT_FALSE(streams[5].sender->doubted());
}

TEST_F(RegistryTest, SilenceOfManyIsBelievedInTheEnd) {
  std::vector<Stream> streams;
  for (int i = 0; i < 10; ++i) streams.push_back(Open(i));
  Pass(600);
  EXPECT_EQ(streams[3].sender->presence(), v1::PRESENCE_UNKNOWN);
  Pass(40);
  EXPECT_EQ(streams[3].sender->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(registry_->doubt(), "");
  EXPECT_FALSE(streams[3].sender->doubted());
}

TEST_F(RegistryTest, AHoldUpOfThisServiceIsNobodysSilence) {
  std::vector<Stream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(Open(i));
  Pass(1);
  clock_.Advance(absl::Seconds(300));
  registry_->Tick();
  EXPECT_EQ(streams[0].sender->presence(), v1::PRESENCE_UNKNOWN);
  EXPECT_FALSE(streams[0].sender->doubted());
  EXPECT_NE(registry_->doubt(), "");
  Beat(streams[0]);
  EXPECT_EQ(streams[0].sender->presence(), v1::PRESENCE_ONLINE);
  PassBeating(89, {&streams[0]});
  EXPECT_EQ(streams[1].sender->presence(), v1::PRESENCE_UNKNOWN);
  PassBeating(1, {&streams[0]});
  EXPECT_EQ(streams[1].sender->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(registry_->doubt(), "");
}

TEST_F(RegistryTest, AfterARestartWhoWasThereIsUnknownForTheGrace) {
  const absl::Time now = clock_.Now();
  const auto record = [&](int node, v1::Presence presence) {
    return SenderRecord{absl::StrCat("spiffe://f/node/n", node),
                        absl::StrCat("n", node),
                        presence,
                        now - absl::Seconds(500),
                        now - absl::Seconds(130),
                        1,
                        1};
  };
  Restart({record(1, v1::PRESENCE_ONLINE), record(2, v1::PRESENCE_LATE),
           record(3, v1::PRESENCE_OFFLINE), record(4, v1::PRESENCE_LOST)});
  EXPECT_EQ(listener_.seen, (std::vector<v1::Presence>{v1::PRESENCE_UNKNOWN, v1::PRESENCE_UNKNOWN,
                                                       v1::PRESENCE_OFFLINE, v1::PRESENCE_LOST}));
  const auto known = registry_->Find("spiffe://f/node/n2", "n2");
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->last_seen(), clock_.MonotonicNow() - absl::Seconds(130));
  Stream back = Open(1);
  EXPECT_EQ(back.sender->presence(), v1::PRESENCE_ONLINE);
  PassBeating(89, {&back});
  EXPECT_EQ(known->presence(), v1::PRESENCE_UNKNOWN);
  PassBeating(1, {&back});
  EXPECT_EQ(known->presence(), v1::PRESENCE_LOST);  // silent for 220 s by now
  EXPECT_EQ(back.sender->presence(), v1::PRESENCE_ONLINE);
}

TEST_F(RegistryTest, WhatChangedIsTakenOnce) {
  Stream a = Open(1);
  Open(2);
  EXPECT_EQ(registry_->TakeChanged(1).size(), 1);
  EXPECT_EQ(registry_->TakeChanged(10).size(), 1);
  EXPECT_EQ(registry_->TakeChanged(10).size(), 0);
  clock_.Advance(absl::Seconds(3));
  Beat(a);
  const auto changed = registry_->TakeChanged(10);
  ASSERT_EQ(changed.size(), 1);
  EXPECT_EQ(changed[0].node, "n1");
  EXPECT_EQ(changed[0].last_seen, clock_.Now());
  EXPECT_EQ(changed[0].presence_since, clock_.Now() - absl::Seconds(3));
  EXPECT_NE(changed[0].instance, 0);
}

TEST_F(RegistryTest, SendersAreBoundedAndTheGoneAreForgotten) {
  options_.max_senders = 2;
  Restart();
  Stream one = Open(1);
  Open(2);
  EXPECT_EQ(ReasonOf(TryOpen(3).status()), "TOO_MANY_SENDERS");
  EXPECT_EQ(ReasonOf(registry_->Visit("u", "n3").status()), "TOO_MANY_SENDERS");
  registry_->Goodbye(one.seat);
  clock_.Advance(absl::Hours(24));
  registry_->Tick();
  EXPECT_EQ(registry_->Find("spiffe://f/node/n1", "n1"), nullptr);
  EXPECT_TRUE(TryOpen(3).ok());
}

TEST_F(RegistryTest, WhoWasRefusedAtItsFirstBeatWasNeverThere) {
  Stream stream = *TryOpen(1);
  registry_->Closed(stream.seat, false);
  EXPECT_EQ(registry_->Find("spiffe://f/node/n1", "n1"), nullptr);
  registry_->Leave(*registry_->Visit("u", "n1"));
  EXPECT_EQ(registry_->Find("u", "n1"), nullptr);
  Pass(100);
  EXPECT_TRUE(listener_.seen.empty());
}

TEST_F(RegistryTest, AVisitorBeatsWithoutAStream) {
  const auto seat = registry_->Visit("u", "n1");
  ASSERT_TRUE(seat.ok());
  EXPECT_EQ(registry_->BeatOnce(*seat).interval, absl::Seconds(10));
  const auto sender = seat->sender();
  EXPECT_EQ(sender->presence(), v1::PRESENCE_ONLINE);
  Pass(20);
  EXPECT_EQ(sender->presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(sender->evidence(), Evidence::kNone);
  registry_->BeatOnce(*registry_->Visit("u", "n1"));
  EXPECT_EQ(sender->presence(), v1::PRESENCE_ONLINE);
  // All that it was for is done, and old clients say no goodbye.
  registry_->Excuse(sender);
  Pass(300);
  EXPECT_EQ(sender->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(RegistryTest, AStopEndsWhatIsConnected) {
  Stream there = Open(1);
  Stream gone = Open(2);
  registry_->Closed(gone.seat, true);
  registry_->EndAll(absl::UnavailableError("stopping"));
  EXPECT_EQ(there.line->ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(gone.line->ended.ok());
}

TEST_F(RegistryTest, WhoIsConnectedIsNotExcused) {
  Stream stream = Open(1);
  registry_->Excuse(stream.sender);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_ONLINE);
}

}  // namespace
}  // namespace muster
