#include "services/status/heartbeats/sender_streams.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

constexpr uint64_t kPair = 1;
constexpr uint64_t kOtherPair = 2;

class FakeLink : public SenderLink {
 public:
  void Probe() override {}
  void End(const absl::Status&) override {}
};

class SenderStreamsTest : public ::testing::Test {
 protected:
  // Opens a stream whose link stays until the end of the test.
  uint32_t Open(uint64_t pair, uint16_t port = 0) {
    links_.push_back(std::make_shared<FakeLink>());
    SenderConnection connection{links_.back(), {}, nullptr};
    connection.peer.port = port;
    replaced_ = nullptr;
    const auto number = streams_.Open(pair, connection, &replaced_);
    status_ = number.status();
    return number.ok() ? *number : 0;
  }

  SenderStreams streams_;
  std::vector<std::shared_ptr<FakeLink>> links_;
  std::shared_ptr<SenderLink> replaced_;
  absl::Status status_;
};

TEST_F(SenderStreamsTest, StreamsOfDifferentPairsAreOpenTogether) {
  const uint32_t one = Open(kPair);
  const uint32_t two = Open(kOtherPair);
  EXPECT_EQ(replaced_, nullptr);
  EXPECT_EQ(streams_.Links().size(), 2u);
  EXPECT_EQ(streams_.link(), links_[1]);
  EXPECT_TRUE(streams_.Close(two));
  EXPECT_TRUE(streams_.connected());
  EXPECT_EQ(streams_.link(), links_[0]);
  EXPECT_TRUE(streams_.Close(one));
  EXPECT_FALSE(streams_.connected());
  EXPECT_TRUE(streams_.Links().empty());
}

TEST_F(SenderStreamsTest, StreamOfTheSamePairReplacesTheOldOne) {
  const uint32_t old = Open(kPair);
  Open(kOtherPair);
  const uint32_t fresh = Open(kPair);
  EXPECT_EQ(replaced_, links_[0]);
  EXPECT_EQ(streams_.Links().size(), 2u);
  EXPECT_FALSE(streams_.Close(old));
  EXPECT_EQ(streams_.FindSequence(old), nullptr);
  EXPECT_NE(streams_.FindSequence(fresh), nullptr);
}

TEST_F(SenderStreamsTest, SequenceIsKeptForEachPair) {
  const uint32_t one = Open(kPair);
  *streams_.FindSequence(one) = 7;
  EXPECT_EQ(*streams_.FindSequence(Open(kOtherPair)), -1);
  const uint32_t again = Open(kPair);
  EXPECT_EQ(*streams_.FindSequence(again), 7);
  EXPECT_TRUE(streams_.Close(again));
  EXPECT_EQ(streams_.FindSequence(again), nullptr);
  EXPECT_EQ(*streams_.FindSequence(Open(kPair)), 7);
  EXPECT_EQ(replaced_, nullptr) << "the old stream was closed";
}

TEST_F(SenderStreamsTest, PeerIsThatOfTheStreamThatClosedLast) {
  EXPECT_EQ(streams_.peer().port, 0);
  const uint32_t one = Open(kPair, 11);
  const uint32_t two = Open(kOtherPair, 22);
  EXPECT_EQ(streams_.peer().port, 22);
  streams_.Close(two);
  EXPECT_EQ(streams_.peer().port, 11);
  streams_.Close(one);
  EXPECT_EQ(streams_.peer().port, 11);
  streams_.ForgetPeer();
  EXPECT_EQ(streams_.peer().port, 0);
}

TEST_F(SenderStreamsTest, OpenStreamsAreBounded) {
  for (size_t i = 0; i < SenderStreams::kMaxOpen; ++i) ASSERT_NE(Open(100 + i), 0u);
  EXPECT_EQ(Open(kPair), 0u);
  EXPECT_EQ(ReasonOf(status_), "TOO_MANY_STREAMS_OF_CALLER");
  const uint32_t fresh = Open(100);
  EXPECT_NE(fresh, 0u) << "it replaces one";
  EXPECT_TRUE(streams_.Close(fresh));
  EXPECT_NE(Open(kPair), 0u);
}

TEST_F(SenderStreamsTest, ClosedStreamsAreBounded) {
  *streams_.FindSequence(Open(kPair)) = 7;
  streams_.Close(1);
  for (uint32_t i = 2; i < 10; ++i) {
    ASSERT_EQ(Open(100 + i), i);
    EXPECT_TRUE(streams_.Close(i));
  }
  EXPECT_EQ(*streams_.FindSequence(Open(kPair)), -1);
}

TEST_F(SenderStreamsTest, ClearedStreamsAreReplacedByNewNumbers) {
  const uint32_t old = Open(kPair);
  streams_.Clear();
  EXPECT_FALSE(streams_.connected());
  EXPECT_EQ(streams_.link(), nullptr);
  EXPECT_EQ(streams_.relay(), nullptr);
  EXPECT_NE(Open(kPair), old);
  EXPECT_FALSE(streams_.Close(old));
}

}  // namespace
}  // namespace muster
