// Silence, doubt, and the kernel's view of connections.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/status/heartbeats/testing/registry_fixture.h"

namespace muster {
namespace {

using RegistryTickTest = testing::RegistryFixture;
using Sent = TcpState::Sent;

TEST_F(RegistryTickTest, SilentSenderIsLateThenSuspectThenLost) {
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

TEST_F(RegistryTickTest, SenderIsOnlineWhileItSendsHeartbeats) {
  Stream stream = Open(1);
  PassWithHeartbeats(600, {&stream});
  EXPECT_EQ(listener_.seen, std::vector<v1::Presence>{v1::PRESENCE_ONLINE});
  Pass(190);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LOST);
  SendHeartbeat(stream);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(stream.sender->last_seen(), clock_.MonotonicNow());
  EXPECT_EQ(journal_.details["n1"].back(), "heartbeats resumed after 3m10s");
  Pass(20);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LATE);
}

TEST_F(RegistryTickTest, KernelsViewBecomesEvidence) {
  Stream stopped = Open(1);
  Stream cut = Open(2);
  Stream killed = Open(3);
  states_[2].sent = Sent::kAcknowledged;
  states_[3].sent = Sent::kWaiting;
  registry_->Closed(killed.stream_ref, true);
  Pass(1);
  EXPECT_EQ(killed.sender->evidence(), Evidence::kClosed);
  EXPECT_EQ(killed.sender->presence(), v1::PRESENCE_ONLINE);
  Pass(19);
  EXPECT_EQ(stopped.sender->presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(stopped.sender->evidence(), Evidence::kAcknowledging);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kNone);
  states_[3].sent = Sent::kUnacknowledged;
  Pass(1);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kUnacknowledged);
  EXPECT_EQ(killed.sender->evidence(), Evidence::kClosed);
  SendHeartbeat(cut);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kNone);
}

TEST_F(RegistryTickTest, ConnectionThatTheKernelDroppedIsNoCrash) {
  Stream cut = Open(1);
  states_[2].sent = Sent::kUnacknowledged;
  Pass(13);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kNone);  // it is not even late
  states_[2] = {};
  registry_->Closed(cut.stream_ref, true);
  Pass(1);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kUnacknowledged);
}

TEST_F(RegistryTickTest, ConnectionEndedHereForSilenceIsNoCrash) {
  Stream stopped = Open(1);
  states_[2] = {Sent::kAcknowledged, /*ended_here=*/true};
  registry_->Closed(stopped.stream_ref, true);
  Pass(1);
  EXPECT_EQ(stopped.sender->evidence(), Evidence::kAcknowledging);
}

TEST_F(RegistryTickTest, OrderlyEndByTheServiceIsNoEvidence) {
  Stream stream = Open(1);
  registry_->Closed(stream.stream_ref, false);
  Pass(25);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(stream.sender->evidence(), Evidence::kNone);
  EXPECT_EQ(stream.line->probes, 0);
}

TEST_F(RegistryTickTest, SilenceOfManyIsDoubted) {
  std::vector<Stream> streams;
  for (int i = 0; i < 20; ++i) streams.push_back(Open(i));
  std::vector<Stream*> there;
  for (int i = 6; i < 20; ++i) there.push_back(&streams[static_cast<size_t>(i)]);
  // They do not become due at the same time: the first are late before there are many.
  for (int i = 0; i < 3; ++i) SendHeartbeat(streams[static_cast<size_t>(i)]);
  Pass(1);
  for (int i = 3; i < 6; ++i) SendHeartbeat(streams[static_cast<size_t>(i)]);
  PassWithHeartbeats(200, there);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(streams[static_cast<size_t>(i)].sender->presence(), v1::PRESENCE_UNKNOWN) << i;
    EXPECT_TRUE(streams[static_cast<size_t>(i)].sender->doubted()) << i;
  }
  EXPECT_EQ(streams[6].sender->presence(), v1::PRESENCE_ONLINE);
  EXPECT_NE(registry_->doubt().find("6 of 20"), std::string::npos) << registry_->doubt();
  for (int i = 0; i < 5; ++i) SendHeartbeat(streams[static_cast<size_t>(i)]);
  there = {};
  for (int i = 0; i < 20; ++i) {
    if (i != 5) there.push_back(&streams[static_cast<size_t>(i)]);
  }
  PassWithHeartbeats(6, there);
  EXPECT_EQ(registry_->doubt(), "");
  EXPECT_FALSE(streams[0].sender->doubted());
  EXPECT_EQ(streams[0].sender->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(streams[5].sender->presence(), v1::PRESENCE_LOST);
  EXPECT_FALSE(streams[5].sender->doubted());
}

TEST_F(RegistryTickTest, SilenceOfManyIsBelievedAfterTheLimit) {
  std::vector<Stream> streams;
  for (int i = 0; i < 10; ++i) streams.push_back(Open(i));
  Pass(600);
  EXPECT_EQ(streams[3].sender->presence(), v1::PRESENCE_UNKNOWN);
  Pass(40);
  EXPECT_EQ(streams[3].sender->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(registry_->doubt(), "");
  EXPECT_FALSE(streams[3].sender->doubted());
}

TEST_F(RegistryTickTest, HoldUpOfTheServiceIsNoSilence) {
  std::vector<Stream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(Open(i));
  Pass(1);
  clock_.Advance(absl::Seconds(300));
  registry_->Tick();
  EXPECT_EQ(streams[0].sender->presence(), v1::PRESENCE_UNKNOWN);
  EXPECT_FALSE(streams[0].sender->doubted());
  EXPECT_NE(registry_->doubt(), "");
  SendHeartbeat(streams[0]);
  EXPECT_EQ(streams[0].sender->presence(), v1::PRESENCE_ONLINE);
  PassWithHeartbeats(89, {&streams[0]});
  EXPECT_EQ(streams[1].sender->presence(), v1::PRESENCE_UNKNOWN);
  PassWithHeartbeats(1, {&streams[0]});
  EXPECT_EQ(streams[1].sender->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(registry_->doubt(), "");
}

TEST_F(RegistryTickTest, RestoredSenderIsUnknownForTheGrace) {
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
  PassWithHeartbeats(89, {&back});
  EXPECT_EQ(known->presence(), v1::PRESENCE_UNKNOWN);
  PassWithHeartbeats(1, {&back});
  EXPECT_EQ(known->presence(), v1::PRESENCE_LOST);  // silent for 220 s by now
  EXPECT_EQ(back.sender->presence(), v1::PRESENCE_ONLINE);
}

TEST_F(RegistryTickTest, SendersAreBoundedAndOldOnesForgotten) {
  options_.max_senders = 2;
  Restart();
  Stream one = Open(1);
  Open(2);
  EXPECT_EQ(ReasonOf(TryOpen(3).status()), "TOO_MANY_SENDERS");
  EXPECT_EQ(ReasonOf(registry_->Visit("u", "n3").status()), "TOO_MANY_SENDERS");
  registry_->Goodbye(one.stream_ref);
  clock_.Advance(absl::Hours(24));
  registry_->Tick();
  EXPECT_EQ(registry_->Find("spiffe://f/node/n1", "n1"), nullptr);
  EXPECT_TRUE(TryOpen(3).ok());
}

}  // namespace
}  // namespace muster
