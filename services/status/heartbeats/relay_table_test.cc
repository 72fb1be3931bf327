#include "services/status/heartbeats/relay_table.h"

#include <atomic>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

constexpr absl::Duration kDoubt = absl::Minutes(10);
constexpr absl::Duration kReturn = absl::Seconds(90);

class RelayTableTest : public ::testing::Test {
 protected:
  RelayTable relays_{{kDoubt, kReturn}};
};

TEST_F(RelayTableTest, ConnectedRelayExplainsNoSilence) {
  RelayState* const relay = *relays_.Open("r1", absl::Seconds(1));
  EXPECT_FALSE(relays_.ExplainsSilence(*relay, absl::Seconds(2), absl::Seconds(3)));
  EXPECT_TRUE(relays_.Lost(absl::Seconds(3)).empty());
}

TEST_F(RelayTableTest, DisconnectedRelayExplainsSilenceUpToTheLimit) {
  RelayState* const relay = *relays_.Open("r1", absl::Seconds(1));
  relays_.Close(relay, absl::Seconds(10));
  const absl::Duration end = absl::Seconds(10) + kDoubt;
  EXPECT_TRUE(relays_.ExplainsSilence(*relay, {}, end - absl::Seconds(1)));
  EXPECT_FALSE(relays_.ExplainsSilence(*relay, {}, end));
  ASSERT_EQ(relays_.Lost(absl::Seconds(75)).size(), 1u);
  EXPECT_EQ(relays_.Lost(absl::Seconds(75))[0], relay);
  EXPECT_EQ(WhyUnknown(*relay, absl::Seconds(75)),
            "relay r1 is not connected (1m5s): the state of its nodes is unknown");
  EXPECT_TRUE(relays_.Lost(end).empty());
}

TEST_F(RelayTableTest, ReturnedRelayExplainsTheSilenceOfEarlierSenders) {
  RelayState* const relay = *relays_.Open("r1", absl::Seconds(1));
  relays_.Close(relay, absl::Seconds(10));
  EXPECT_EQ(*relays_.Open("r1", absl::Seconds(20)), relay);
  EXPECT_TRUE(relays_.ExplainsSilence(*relay, absl::Seconds(9), absl::Seconds(20) + kReturn / 2));
  EXPECT_FALSE(relays_.ExplainsSilence(*relay, absl::Seconds(9), absl::Seconds(20) + kReturn));
  EXPECT_FALSE(relays_.ExplainsSilence(*relay, absl::Seconds(21), absl::Seconds(22)));
}

TEST_F(RelayTableTest, ConnectedRelayThatSendsNothingExplainsSilence) {
  constexpr absl::Duration kInterval = absl::Seconds(10);
  RelayState* const relay = *relays_.Open("r1", absl::Seconds(1));
  EXPECT_FALSE(relay->IsSilent(absl::Hours(1))) << "it has sent no message yet";
  relays_.HandleMessage(relay, absl::Seconds(2), kInterval);
  EXPECT_FALSE(relays_.ExplainsSilence(*relay, absl::Seconds(2), absl::Seconds(16)));
  EXPECT_TRUE(relays_.Lost(absl::Seconds(16)).empty());
  EXPECT_TRUE(relays_.ExplainsSilence(*relay, absl::Seconds(2), absl::Seconds(17)));
  ASSERT_EQ(relays_.Lost(absl::Seconds(17)).size(), 1u);
  EXPECT_EQ(WhyUnknown(*relay, absl::Seconds(17)),
            "relay r1 is connected but silent (15s): the state of its nodes is unknown");
  EXPECT_FALSE(relays_.ExplainsSilence(*relay, absl::Seconds(2), absl::Seconds(2) + kDoubt));
  EXPECT_TRUE(relays_.Lost(absl::Seconds(2) + kDoubt).empty());
}

TEST_F(RelayTableTest, RelayAfterItsSilenceExplainsTheSilenceOfEarlierSenders) {
  RelayState* const relay = *relays_.Open("r1", absl::Seconds(1));
  for (const int at : {2, 7, 40}) {
    relays_.HandleMessage(relay, absl::Seconds(at), absl::Seconds(10));
  }
  EXPECT_TRUE(relays_.Lost(absl::Seconds(41)).empty());
  EXPECT_TRUE(relays_.ExplainsSilence(*relay, absl::Seconds(7), absl::Seconds(41)));
  EXPECT_FALSE(relays_.ExplainsSilence(*relay, absl::Seconds(40), absl::Seconds(41)));
}

// A relay of an attacker, or with a bad connection.
TEST_F(RelayTableTest, RelayThatComesAndGoesExplainsNoMoreThanOneThatIsAway) {
  absl::Duration now = absl::Seconds(1);
  RelayState* const relay = *relays_.Open("r1", now);
  const auto come_and_go = [&](absl::Duration away, absl::Duration there) {
    relays_.Close(relay, now);
    now += away;
    const bool lost = !relays_.Lost(now).empty();
    EXPECT_EQ(relays_.ExplainsSilence(*relay, now - absl::Seconds(1), now), lost);
    EXPECT_TRUE(relays_.Open("r1", now).ok());
    now += there;
    return lost;
  };
  for (int i = 0; i < 119; ++i) EXPECT_TRUE(come_and_go(absl::Seconds(5), {})) << i;
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(come_and_go(absl::Seconds(5), {})) << i;
  // It explains as much again as it was present.
  EXPECT_FALSE(come_and_go(absl::Seconds(5), absl::Minutes(2)));
  EXPECT_TRUE(come_and_go(absl::Seconds(115), {}));
  EXPECT_FALSE(come_and_go(absl::Seconds(5), absl::Hours(1)));
  EXPECT_TRUE(come_and_go(kDoubt - absl::Seconds(1), {}));
}

TEST_F(RelayTableTest, SenderThatDoesNotReturnIsExplainedOnce) {
  RelayState* const relay = *relays_.Open("r1", absl::Seconds(1));
  absl::Duration now = absl::Seconds(10);
  const absl::Duration end = now + kDoubt + kReturn;
  for (; now < end; now += kReturn / 2) {
    EXPECT_TRUE(relays_.ExplainsSilence(*relay, absl::Seconds(10), now) ||
                now == absl::Seconds(10));
    relays_.Close(relay, now);
    ASSERT_TRUE(relays_.Open("r1", now + absl::Milliseconds(1)).ok());
  }
  EXPECT_FALSE(relays_.ExplainsSilence(*relay, absl::Seconds(10), end));
}

// A silent relay has used what a disconnected one uses.
TEST_F(RelayTableTest, SilenceCountsAsAway) {
  absl::Duration now = absl::Seconds(1);
  RelayState* const relay = *relays_.Open("r1", now);
  for (int i = 0; i < 5; ++i) {
    relays_.HandleMessage(relay, now, absl::Seconds(10));
    EXPECT_TRUE(relays_.Lost(now).empty());
    now += absl::Seconds(119);
    EXPECT_EQ(relays_.Lost(now).size(), 1u) << i;
  }
  relays_.HandleMessage(relay, now, absl::Seconds(10));
  EXPECT_TRUE(relays_.Lost(now + absl::Seconds(30)).empty());
}

TEST_F(RelayTableTest, SilenceThatANewStreamEndsCountsAsAway) {
  RelayState* const relay = *relays_.Open("r1", absl::Seconds(1));
  relays_.HandleMessage(relay, absl::Seconds(1), absl::Seconds(10));
  const absl::Duration now = absl::Seconds(1) + absl::Minutes(9);
  ASSERT_EQ(relays_.Lost(now).size(), 1u);
  ASSERT_TRUE(relays_.Open("r1", now).ok());
  relays_.Close(relay, now);
  relays_.Close(relay, now);
  EXPECT_EQ(relays_.Lost(now + absl::Seconds(59)).size(), 1u);
  EXPECT_TRUE(relays_.Lost(now + absl::Minutes(2)).empty());
}

// A judge may ask at any moment while the relay returns.
TEST_F(RelayTableTest, ReturningRelayExplainsTheSilenceAtEveryMoment) {
  constexpr absl::Duration kSeen = absl::Seconds(1);
  const absl::Duration now = kSeen + absl::Minutes(6);
  std::atomic<const RelayState*> returning = nullptr;
  std::atomic<bool> done = false;
  int unexplained = 0;
  std::thread judge([&] {
    while (!done) {
      const RelayState* const relay = returning;
      if (relay != nullptr && !relays_.ExplainsSilence(*relay, kSeen, now)) ++unexplained;
    }
  });
  for (int i = 0; i < 5000; ++i) {
    RelayState* const relay = *relays_.Open("r" + std::to_string(i), kSeen);
    relays_.HandleMessage(relay, kSeen, absl::Seconds(10));
    returning = relay;
    relays_.HandleMessage(relay, now, absl::Seconds(10));
  }
  done = true;
  judge.join();
  EXPECT_EQ(unexplained, 0);
}

TEST_F(RelayTableTest, RelayIsConnectedUntilItsLastStreamEnds) {
  RelayState* const relay = *relays_.Open("r1", absl::Seconds(1));
  ASSERT_TRUE(relays_.Open("r1", absl::Seconds(2)).ok());
  relays_.Close(relay, absl::Seconds(3));
  EXPECT_TRUE(relay->connected);
  relays_.Close(relay, absl::Seconds(4));
  EXPECT_FALSE(relay->connected);
}

TEST_F(RelayTableTest, RelayThatWasFoundIsNotConnected) {
  RelayState* const relay = *relays_.Find("r1", absl::Seconds(1));
  EXPECT_FALSE(relay->connected);
  EXPECT_TRUE(relays_.ExplainsSilence(*relay, absl::Seconds(1), absl::Seconds(2)));
  EXPECT_EQ(*relays_.Open("r1", absl::Seconds(2)), relay);
}

TEST_F(RelayTableTest, TooManyRelaysAreRefused) {
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(relays_.Open("r" + std::to_string(i), {}).ok());
  EXPECT_EQ(ReasonOf(relays_.Open("another", {}).status()), "TOO_MANY_SENDERS");
  EXPECT_TRUE(relays_.Open("r0", {}).ok());
}

}  // namespace
}  // namespace muster
