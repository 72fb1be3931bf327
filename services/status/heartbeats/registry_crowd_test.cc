// The silence of many senders: of those that closed their connection, and of others.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/status/heartbeats/testing/registry_fixture.h"

namespace muster {
namespace {

using Sent = TcpState::Sent;

class RegistryCrowdTest : public testing::RegistryFixture {
 protected:
  void OpenMany(int count) {
    for (int i = 0; i < count; ++i) streams_.push_back(Open(i));
  }

  // Advances time while the streams from `first` on continue to send heartbeats.
  void PassBeatingFrom(size_t first, int seconds) {
    std::vector<Stream*> there;
    for (size_t i = first; i < streams_.size(); ++i) there.push_back(&streams_[i]);
    PassWithHeartbeats(seconds, there);
  }

  void CloseFirst(size_t count) {
    for (size_t i = 0; i < count; ++i) registry_->Closed(streams_[i].stream_ref, /*by_peer=*/true);
  }

  const Sender& sender(size_t i) const { return *streams_[i].sender; }

  std::vector<Stream> streams_;
};

TEST_F(RegistryCrowdTest, ManySendersThatClosedAreNotDoubted) {
  OpenMany(10);
  CloseFirst(10);
  Pass(20);
  EXPECT_EQ(registry_->doubt(), "");
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(sender(i).evidence(), Evidence::kClosed);
    EXPECT_EQ(sender(i).presence(), v1::PRESENCE_LATE);
  }
  Pass(160);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(sender(i).presence(), v1::PRESENCE_LOST);
}

TEST_F(RegistryCrowdTest, OnlySilentSendersAreDoubted) {
  OpenMany(40);
  CloseFirst(20);
  PassBeatingFrom(25, 180);
  EXPECT_NE(registry_->doubt().find("5 of 20"), std::string::npos) << registry_->doubt();
  EXPECT_EQ(sender(0).presence(), v1::PRESENCE_LOST);
  EXPECT_FALSE(sender(19).doubted());
  EXPECT_EQ(sender(19).presence(), v1::PRESENCE_LOST);
  EXPECT_TRUE(sender(20).doubted());
  EXPECT_EQ(sender(24).presence(), v1::PRESENCE_UNKNOWN);
  EXPECT_EQ(sender(25).presence(), v1::PRESENCE_ONLINE);
}

TEST_F(RegistryCrowdTest, LateSenderThatClosedIsNotDoubted) {
  OpenMany(10);
  CloseFirst(1);
  Pass(1);
  for (size_t i = 1; i < 10; ++i) SendHeartbeat(streams_[i]);
  Pass(20);
  EXPECT_NE(registry_->doubt(), "");
  EXPECT_EQ(sender(0).presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(sender(1).presence(), v1::PRESENCE_UNKNOWN);
}

TEST_F(RegistryCrowdTest, DoubtedSenderThatClosesIsJudged) {
  OpenMany(10);
  Pass(30);
  EXPECT_TRUE(sender(0).doubted());
  CloseFirst(1);
  Pass(150);
  EXPECT_EQ(sender(0).presence(), v1::PRESENCE_LOST);
  EXPECT_FALSE(sender(0).doubted());
  EXPECT_EQ(sender(1).presence(), v1::PRESENCE_UNKNOWN);
}

TEST_F(RegistryCrowdTest, LostConnectionIsNoCloseByThePeer) {
  OpenMany(10);
  for (uint16_t port = 1; port <= 10; ++port) states_[port].sent = Sent::kUnacknowledged;
  Pass(13);
  states_.clear();
  CloseFirst(10);
  Pass(167);
  EXPECT_NE(registry_->doubt(), "");
  EXPECT_EQ(sender(0).presence(), v1::PRESENCE_UNKNOWN);
}

TEST_F(RegistryCrowdTest, ClosedConnectionWithoutKernelAnswerIsSilence) {
  OpenMany(10);
  kernel_answers_ = false;
  CloseFirst(10);
  Pass(180);
  EXPECT_NE(registry_->doubt(), "");
  EXPECT_EQ(sender(0).presence(), v1::PRESENCE_UNKNOWN);
}

TEST_F(RegistryCrowdTest, HoldUpAlsoSuspendsJudgementOfClosedSenders) {
  OpenMany(10);
  CloseFirst(10);
  Pass(5);
  clock_.Advance(absl::Seconds(300));
  registry_->Tick();
  EXPECT_NE(registry_->doubt(), "");
  EXPECT_EQ(sender(0).presence(), v1::PRESENCE_UNKNOWN);
  Pass(90);
  EXPECT_EQ(sender(0).presence(), v1::PRESENCE_LOST);
}

// The kernel has given up and forgotten a dead connection before its sender is late.
TEST_F(RegistryCrowdTest, LongIntervalHasSeveralLooks) {
  options_.interval = absl::Seconds(30);
  Restart();
  Stream cut = Open(1);
  Pass(30);
  states_[2].sent = Sent::kUnacknowledged;  // the keepalive
  Pass(15);
  states_.clear();
  registry_->Closed(cut.stream_ref, /*by_peer=*/true);
  Pass(2);
  EXPECT_EQ(cut.sender->evidence(), Evidence::kUnacknowledged);
}

}  // namespace
}  // namespace muster
