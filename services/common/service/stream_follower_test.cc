// Follows streams of a real server over mutual TLS; the retry waits are on a fake clock.
#include "services/common/service/stream_follower.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster {
namespace {

using testing::Answer;
using testing::Mailbox;
using testing::RelayScript;
using testing::RelayStream;
using testing::StreamServer;

using Follower = StreamFollower<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>;

class StreamFollowerTest : public ::testing::Test {
 protected:
  StreamFollowerTest() {
    script_.on_start = [](RelayStream& stream) { stream.ReadNext(); };
    script_.on_half_close = [](RelayStream&) {};  // a stream that does not end
    script_.on_message = [](RelayStream& stream, const v1::RelayHeartbeatsRequest&) {
      stream.Send(Answer(1));
    };
  }

  void Start(size_t max_pending = 1) {
    ServerStreamOptions options;
    options.max_queued = 100;
    server_.Serve(script_, options);
    Follower::Options follower;
    follower.channel = [channel = server_.ConnectRelay("r1")] { return channel; };
    follower.method = "/muster.v1.HeartbeatService/RelayHeartbeats";
    follower.max_pending = max_pending;
    follower.request = [this] {
      v1::RelayHeartbeatsRequest request;
      request.add_heard_ids(++requests_);
      return request;
    };
    follower.handle = [this](const v1::RelayHeartbeatsResponse& message, Follower::Done done) {
      if (handle_) return handle_(message, std::move(done));
      handled_.Put(message.probes(0));
      done(absl::OkStatus());
    };
    follower.ended = [this](const absl::Status& why, bool received) {
      ended_.Put({why, received});
    };
    follower_ = std::make_unique<Follower>(std::move(follower), clock_, clock_, executor_);
    clock_.Advance(absl::ZeroDuration());
  }

  RelayScript script_;
  StreamServer server_;
  FakeClock clock_;
  Executor executor_{{"background", 2}};
  int requests_ = 0;
  std::function<void(const v1::RelayHeartbeatsResponse&, Follower::Done)> handle_;
  Mailbox<int> handled_;
  Mailbox<std::pair<absl::Status, bool>> ended_;
  std::unique_ptr<Follower> follower_;
};

TEST_F(StreamFollowerTest, SilenceCountsFromTheLastMessage) {
  Start();
  EXPECT_EQ(handled_.Take(), 1);
  EXPECT_TRUE(follower_->received());
  EXPECT_TRUE(follower_->receiving());
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(follower_->silence(), absl::Seconds(3));
}

TEST_F(StreamFollowerTest, EndedStreamIsOpenedAgainAfterTheBackOff) {
  script_.on_message = [](RelayStream& stream, const v1::RelayHeartbeatsRequest&) {
    stream.Send(Answer(1));
    stream.End(absl::UnavailableError("gone"));
  };
  Start();
  EXPECT_EQ(handled_.Take(), 1);
  const auto end = ended_.Take();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->first.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(end->second) << "the stream brought a message";
  EXPECT_FALSE(follower_->receiving());
  executor_.AwaitIdle();
  EXPECT_EQ(requests_, 1);
  clock_.Advance(absl::Milliseconds(500));  // the first ceiling
  EXPECT_EQ(handled_.Take(), 1);
  EXPECT_EQ(requests_, 2);
}

TEST_F(StreamFollowerTest, FailedMessageEndsTheStream) {
  handle_ = [](const v1::RelayHeartbeatsResponse&, Follower::Done done) {
    done(errors::Overloaded());
  };
  Start();
  const auto end = ended_.Take();
  ASSERT_TRUE(end);
  EXPECT_EQ(ReasonOf(end->first), "OVERLOADED");
}

TEST_F(StreamFollowerTest, NoMoreIsReadWhileTheLimitIsPending) {
  script_.on_message = [](RelayStream& stream, const v1::RelayHeartbeatsRequest&) {
    for (int i = 1; i <= 5; ++i) stream.Send(Answer(i));
    stream.End(absl::OkStatus());
  };
  Mailbox<std::shared_ptr<Follower::Done>> pending;
  handle_ = [&](const v1::RelayHeartbeatsResponse& message, Follower::Done done) {
    handled_.Put(message.probes(0));
    pending.Put(std::make_shared<Follower::Done>(std::move(done)));
  };
  Start(/*max_pending=*/2);
  EXPECT_EQ(handled_.Take(), 1);
  EXPECT_EQ(handled_.Take(), 2);
  executor_.AwaitIdle();
  EXPECT_EQ(handled_.size(), 0u);
  for (int i = 3; i <= 5; ++i) {
    (*pending.Take().value())(absl::OkStatus());
    EXPECT_EQ(handled_.Take(), i);
  }
  EXPECT_EQ(ended_.size(), 0u) << "two messages are not handled yet";
  for (int i = 0; i < 2; ++i) (*pending.Take().value())(absl::OkStatus());
  EXPECT_EQ(ended_.Take()->first, absl::UnavailableError("the service ended the stream"));
}

TEST_F(StreamFollowerTest, StopWaitsForPendingMessages) {
  Mailbox<std::shared_ptr<Follower::Done>> pending;
  handle_ = [&](const v1::RelayHeartbeatsResponse&, Follower::Done done) {
    pending.Put(std::make_shared<Follower::Done>(std::move(done)));
  };
  Start();
  const auto done = pending.Take();
  ASSERT_TRUE(done);
  bool handled = false;
  ASSERT_TRUE(executor_.Post([&] {
    handled = true;
    (**done)(absl::OkStatus());
  }));
  follower_->Stop();
  EXPECT_TRUE(handled);
  EXPECT_EQ(ended_.size(), 0u) << "not called after Stop";
}

}  // namespace
}  // namespace muster
