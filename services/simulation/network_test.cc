#include "services/simulation/network.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace muster::testing {
namespace {

// Two ends, which write down what they learn.
class Ends {
 public:
  explicit Ends(uint64_t seed) : network(seed), connection(network.Connect("a", "b")) {
    connection->OnLost(Connection::kClient, [this] { client_lost = true; });
    connection->OnLost(Connection::kServer, [this] { server_lost = true; });
  }

  void Send(int number) {
    connection->Send(Connection::kClient, [this, number] { received.push_back(number); });
  }
  void RunFor(absl::Duration time) {
    bool over = false;
    network.After(time, [&] { over = true; });
    while (!over) network.RunNext();
  }

  Network network;
  std::shared_ptr<Connection> connection;
  std::vector<int> received;
  bool client_lost = false;
  bool server_lost = false;
};

TEST(NetworkTest, MessagesOfOneConnectionArriveInOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Ends ends(seed);
    std::vector<int> sent;
    for (int i = 0; i < 20; ++i) {
      ends.Send(i);
      sent.push_back(i);
    }
    ends.RunFor(absl::Minutes(1));
    EXPECT_EQ(ends.received, sent);
  }
}

TEST(NetworkTest, ResetLosesTheLastMessagesAndBothEndsLearnIt) {
  bool some_lost = false;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Ends ends(seed);
    for (int i = 0; i < 20; ++i) ends.Send(i);
    ends.network.ResetOne();
    ends.RunFor(absl::Minutes(1));
    EXPECT_TRUE(ends.client_lost);
    EXPECT_TRUE(ends.server_lost);
    for (size_t i = 0; i < ends.received.size(); ++i) EXPECT_EQ(ends.received[i], i);
    some_lost |= ends.received.size() < 20;
  }
  EXPECT_TRUE(some_lost);
}

TEST(NetworkTest, EndOfAProcessIsLearntImmediatelyOrByTheSilence) {
  int learnt = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Ends ends(seed);
    ends.network.Lose("b");
    ends.Send(1);
    ends.RunFor(absl::Seconds(5));
    learnt += ends.client_lost ? 1 : 0;
    ends.RunFor(absl::Minutes(1));
    EXPECT_TRUE(ends.received.empty());
    EXPECT_FALSE(ends.server_lost);
    EXPECT_TRUE(ends.client_lost);
  }
  EXPECT_GT(learnt, 0);
  EXPECT_LT(learnt, 50);
}

TEST(NetworkTest, MessagesWaitForTheEndOfASeparation) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Ends ends(seed);
    ends.network.Partition("b", "a", absl::Seconds(30));
    ends.Send(1);
    ends.RunFor(absl::Seconds(29));
    EXPECT_TRUE(ends.received.empty());
    ends.RunFor(absl::Seconds(5));
    EXPECT_TRUE(ends.client_lost || ends.received.size() == 1);
  }
}

TEST(NetworkTest, CloseFollowsTheMessages) {
  Ends ends(1);
  ends.Send(1);
  ends.connection->Close(Connection::kClient);
  ends.RunFor(absl::Minutes(1));
  EXPECT_EQ(ends.received, std::vector<int>{1});
  EXPECT_TRUE(ends.server_lost);
  EXPECT_FALSE(ends.client_lost);
}

}  // namespace
}  // namespace muster::testing
