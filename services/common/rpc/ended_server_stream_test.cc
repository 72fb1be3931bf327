// Streams that this side ends: of clients that do not read, and of revoked callers.
#include <future>
#include <thread>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/server_stream.h"
#include "services/common/rpc/stuck_readers.h"
#include "services/common/rpc/testing/relay_stream_client.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster {
namespace {

using testing::Answer;
using testing::kLarge;
using testing::Queue;
using testing::RelayStream;
using Client = testing::RelayStreamClient;

class EndedServerStreamTest : public testing::RelayStreamTest {
 protected:
  // Waits until the call of a client that takes no message is dropped.
  void AwaitDropped() {
    while (DropStuckReaders(server_.canceller, SystemClock(), absl::ZeroDuration()) == 0) {
      std::this_thread::yield();
    }
  }
};

TEST_F(EndedServerStreamTest, CancelEndsAStreamWhoseClientDoesNotRead) {
  script_.on_start = [](RelayStream& stream) {
    while (stream.Send(Answer(0, kLarge)) == Sent::kQueued) {
    }
  };
  server_.Serve(script_, Queue(20));
  Client client(server_.ConnectRelay("r1"));
  (*script_.started.Take())->Cancel(absl::AbortedError("stuck"));
  const auto end = script_.ended.Take();
  EXPECT_EQ(end->status, absl::AbortedError("stuck"));
  EXPECT_EQ(end->by, EndedBy::kThisSide);
}

TEST_F(EndedServerStreamTest, StuckReaderIsDropped) {
  script_.on_start = [](RelayStream& stream) {
    for (int i = 0; i < 10; ++i) stream.Send(Answer(i, kLarge));
    stream.SendAndEnd(Answer(10, kLarge));
  };
  server_.Serve(script_, Queue(10));
  Client client(server_.ConnectRelay("r1"));
  ASSERT_TRUE(script_.started.Take());
  EXPECT_EQ(script_.ended.size(), 0u);
  AwaitDropped();
  EXPECT_TRUE(script_.ended.Take());
}

TEST_F(EndedServerStreamTest, StreamOfARevokedCallerEndsWithTheReason) {
  server_.Serve(script_);
  Client client(server_.ConnectRelay("r1"));
  ASSERT_TRUE(script_.started.Take());
  server_.canceller.EndIf([](const Caller&) { return false; }, errors::CallerRevoked());
  EXPECT_EQ(script_.ended.size(), 0u);
  server_.canceller.EndIf([](const Caller&) { return true; }, errors::CallerRevoked());
  EXPECT_EQ(ReasonOf(client.End()), "REVOKED");
  const auto end = script_.ended.Take();
  ASSERT_TRUE(end);
  EXPECT_EQ(ReasonOf(end->status), "REVOKED");
}

TEST_F(EndedServerStreamTest, StuckReaderThatIsRevokedIsCancelled) {
  script_.on_start = [](RelayStream& stream) {
    for (int i = 0; i < 10; ++i) stream.Send(Answer(i, kLarge));
  };
  server_.Serve(script_, Queue(10));
  Client client(server_.ConnectRelay("r1"));
  ASSERT_TRUE(script_.started.Take());
  server_.canceller.EndIf([](const Caller&) { return true; }, errors::CallerRevoked());
  EXPECT_TRUE(script_.ended.Take());
}

// The status waits for the handler, which may wait for the disk. The caller loses the call earlier.
TEST_F(EndedServerStreamTest, CallOfARevokedCallerIsCancelledAfterASecond) {
  std::promise<void> resume;
  testing::Mailbox<int> handling;
  script_.on_message = [&](RelayStream&, const v1::RelayHeartbeatsRequest&) {
    handling.Put(1);
    resume.get_future().wait();
  };
  server_.Serve(script_);
  Client client(server_.ConnectRelay("r1"));
  client.Send();
  ASSERT_TRUE(handling.Take());
  server_.canceller.EndIf([](const Caller&) { return true; }, errors::CallerRevoked());
  server_.clock.Advance(absl::Seconds(2));
  EXPECT_EQ(client.End().code(), absl::StatusCode::kCancelled);
  resume.set_value();
  const auto end = script_.ended.Take();
  ASSERT_TRUE(end);
  EXPECT_EQ(ReasonOf(end->status), "REVOKED");
}

TEST_F(EndedServerStreamTest, StuckReaderOfTheLastMessageIsDropped) {
  script_.on_start = [](RelayStream& stream) { stream.SendAndEnd(Answer(1, 8 * kLarge - 99)); };
  server_.Serve(script_);
  Client client(server_.ConnectRelay("r1"));
  ASSERT_TRUE(script_.started.Take());
  AwaitDropped();
  EXPECT_TRUE(script_.ended.Take());
}

}  // namespace
}  // namespace muster
