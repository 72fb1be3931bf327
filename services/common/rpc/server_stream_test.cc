// Bidirectional streams at a server, over real mutual TLS.
#include "services/common/rpc/server_stream.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/rpc/client_stream.h"
#include "services/common/rpc/testing/relay_stream_client.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster {
namespace {

using testing::Answer;
using testing::kLarge;
using testing::kRelayMethod;
using testing::Queue;
using testing::RelayStream;
using Client = testing::RelayStreamClient;
using ServerStreamTest = testing::RelayStreamTest;

TEST_F(ServerStreamTest, MessagesAreAnsweredInOrder) {
  server_.Serve(script_, Queue(100));
  Client client(server_.ConnectRelay("r1"));
  for (int i = 0; i < 20; ++i) client.Send(i);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.Read(), i);
  client.HalfClose();
  EXPECT_TRUE(client.End().ok());
  const auto end = script_.ended.Take();
  EXPECT_TRUE(end->status.ok());
  EXPECT_EQ(end->by, EndedBy::kThisSide);
}

TEST_F(ServerStreamTest, SilentClientIsEndedAtTheDeadline) {
  server_.Serve(script_);
  Client client(server_.ConnectRelay("r1"));
  ASSERT_TRUE(script_.started.Take());
  EXPECT_EQ(server_.streams.Count(kRelayMethod), 0);
  server_.clock.Advance(absl::Seconds(10));
  EXPECT_EQ(ReasonOf(client.End()), "NO_FIRST_MESSAGE");
  EXPECT_EQ(ReasonOf(script_.ended.Take()->status), "NO_FIRST_MESSAGE");
}

TEST_F(ServerStreamTest, ClientThatEndsBeforeItsFirstMessageIsRefused) {
  server_.Serve(script_);
  Client client(server_.ConnectRelay("r1"));
  client.HalfClose();
  EXPECT_EQ(ReasonOf(client.End()), "NO_READABLE_MESSAGE");
  EXPECT_EQ(ReasonOf(script_.ended.Take()->status), "NO_READABLE_MESSAGE");
}

// A client whose first message is no message of the method.
class UnreadableClient final : public ClientStreamHandler<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  using Stream = ClientStream<grpc::ByteBuffer, grpc::ByteBuffer>;

  void OnStart(const std::shared_ptr<Stream>& stream) override {
    const grpc::Slice bytes("\xff\xff\xff");
    stream->Send(grpc::ByteBuffer(&bytes, 1));
    stream->ReadNext();
  }
  void OnMessage(grpc::ByteBuffer) override {}
  void OnEnd(const absl::Status& status, EndedBy) override { ended.Put(status); }

  testing::Mailbox<absl::Status> ended;
};

TEST_F(ServerStreamTest, FirstMessageThatCannotBeReadIsRefused) {
  server_.Serve(script_);
  const auto client = std::make_shared<UnreadableClient>();
  const StreamOwner<grpc::ByteBuffer, grpc::ByteBuffer> stream(
      UnreadableClient::Stream::Start(server_.ConnectRelay("r1"), kRelayMethod, {}, client));
  EXPECT_EQ(ReasonOf(*client->ended.Take()), "NO_READABLE_MESSAGE");
}

TEST_F(ServerStreamTest, CallerAtItsLimitIsRefusedAfterItsFirstMessage) {
  ServerStreamOptions options = Queue(4);
  options.limits.of_caller = 1;
  server_.Serve(script_, options);
  const auto channel = server_.ConnectRelay("r1");
  Client silent(channel);
  Client first(channel);
  first.Send(1);
  EXPECT_EQ(first.Read(), 1);
  EXPECT_EQ(server_.streams.Count(kRelayMethod), 1);
  Client second(channel);
  second.Send(2);
  EXPECT_EQ(ReasonOf(second.End()), "TOO_MANY_STREAMS_OF_CALLER");
  Client other(server_.ConnectRelay("r2"));
  other.Send(3);
  EXPECT_EQ(other.Read(), 3);
}

TEST_F(ServerStreamTest, ClientThatDoesNotReadFillsTheQueueAndNoMore) {
  int sent = 0;
  testing::Mailbox<int> full;
  const auto fill = [&](RelayStream& stream) {
    while (sent < 20) {
      const Sent result = stream.Send(Answer(sent, kLarge));
      if (result != Sent::kQueued) return full.Put(sent);
      ++sent;
    }
    stream.End(absl::OkStatus());
  };
  script_.on_start = fill;
  script_.on_writable = fill;
  server_.Serve(script_, Queue(2));
  Client client(server_.ConnectRelay("r1"));
  ASSERT_TRUE(full.Take());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.Read(), i);
  EXPECT_TRUE(client.End().ok());
  EXPECT_TRUE(script_.ended.Take()->status.ok());
}

TEST_F(ServerStreamTest, BytesBoundTheQueueToo) {
  testing::Mailbox<int> queued;
  script_.on_start = [&](RelayStream& stream) {
    int sent = 0;
    while (stream.Send(Answer(sent, kLarge)) == Sent::kQueued) ++sent;
    queued.Put(sent);
  };
  ServerStreamOptions options = Queue(1000);
  options.max_queued_bytes = 3 * kLarge;
  server_.Serve(script_, options);
  Client client(server_.ConnectRelay("r1"));
  EXPECT_EQ(queued.Take(), 2);  // a third would be over the limit with its header
}

TEST_F(ServerStreamTest, EndSendsWhatIsQueued) {
  script_.on_start = [](RelayStream& stream) {
    for (int i = 0; i < 5; ++i) stream.Send(Answer(i, kLarge));
    stream.End(absl::AbortedError("enough"));
    EXPECT_EQ(stream.Send(Answer(9)), Sent::kEnded);
  };
  server_.Serve(script_, Queue(5));
  Client client(server_.ConnectRelay("r1"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.Read(), i);
  EXPECT_EQ(client.End(), absl::AbortedError("enough"));
}

TEST_F(ServerStreamTest, LastMessageComesBeforeAnOk) {
  script_.on_message = [](RelayStream& stream, const v1::RelayHeartbeatsRequest&) {
    stream.Send(Answer(1, kLarge));
    stream.SendAndEnd(Answer(2, kLarge));
  };
  server_.Serve(script_);
  Client client(server_.ConnectRelay("r1"));
  client.Send();
  EXPECT_EQ(client.Read(), 1);
  EXPECT_EQ(client.Read(), 2);
  EXPECT_TRUE(client.End().ok());
  EXPECT_TRUE(script_.ended.Take()->status.ok());
}

TEST_F(ServerStreamTest, CancelledClientEndsTheStream) {
  server_.Serve(script_, Queue(2));
  Client client(server_.ConnectRelay("r1"));
  client.Send(1);
  EXPECT_EQ(client.Read(), 1);
  client.Cancel();
  const auto end = script_.ended.Take();
  EXPECT_TRUE(absl::IsCancelled(end->status));
  EXPECT_EQ(end->by, EndedBy::kPeer);
  const auto stream = *script_.started.Take();
  EXPECT_TRUE(stream->ended());
  EXPECT_EQ(stream->Send(Answer(1)), Sent::kEnded);  // harmless after the end
  stream->ReadNext();
  stream->Cancel(absl::AbortedError("too late"));
}

TEST_F(ServerStreamTest, HandlerThatDidNotAuthorizeSendsNoLastMessage) {
  script_.authorize = false;
  script_.on_start = [](RelayStream& stream) { stream.SendAndEnd(Answer(1)); };
  server_.Serve(script_);
  Client client(server_.ConnectRelay("r1"));
  EXPECT_EQ(client.Read(), -1);
  EXPECT_EQ(ReasonOf(client.End()), "NOT_AUTHORIZED_BY_HANDLER");
}

TEST_F(ServerStreamTest, CallbacksRunOnTheExecutorIfAsked) {
  testing::Mailbox<std::thread::id> on;
  script_.on_message = [&](RelayStream& stream, const v1::RelayHeartbeatsRequest&) {
    on.Put(std::this_thread::get_id());
    stream.End(absl::OkStatus());
  };
  ServerStreamOptions options;
  options.on_executor = true;
  server_.Serve(script_, options);
  Client client(server_.ConnectRelay("r1"));
  client.Send();
  EXPECT_TRUE(client.End().ok());
  testing::Mailbox<std::thread::id> executor;
  ASSERT_TRUE(server_.executor.Post([&] { executor.Put(std::this_thread::get_id()); }));
  EXPECT_EQ(on.Take(), executor.Take());
}

TEST_F(ServerStreamTest, FullExecutorEndsTheStreamAsOverloaded) {
  testing::Mailbox<int> go;
  testing::Mailbox<int> busy_now;
  const auto busy = [&] {
    busy_now.Put(1);
    go.Take();
  };
  ASSERT_TRUE(server_.executor.Post(busy));
  ASSERT_TRUE(busy_now.Take());
  while (server_.executor.Post(busy)) {  // until its queue is full
  }
  ServerStreamOptions options;
  options.on_executor = true;
  server_.Serve(script_, options);
  Client client(server_.ConnectRelay("r1"));
  client.Send();
  EXPECT_EQ(ReasonOf(client.End()), "OVERLOADED");
  EXPECT_EQ(ReasonOf(script_.ended.Take()->status), "OVERLOADED");
  for (int i = 0; i < 100; ++i) go.Put(i);
  server_.Stop();
  server_.executor.Drain(absl::Seconds(30)).IgnoreError();
}

TEST_F(ServerStreamTest, StopReturnsAfterEveryHandlerHasEnded) {
  testing::Mailbox<int> go;
  script_.on_message = [&](RelayStream&, const v1::RelayHeartbeatsRequest&) { go.Take(); };
  ServerStreamOptions options;
  options.on_executor = true;
  server_.Serve(script_, options);
  Client client(server_.ConnectRelay("r1"));
  client.Send();
  ASSERT_TRUE(script_.started.Take());
  std::thread stopping([&] { server_.Stop(); });
  go.Put(1);
  stopping.join();
  EXPECT_EQ(script_.ended.size(), 1u);
}

TEST_F(ServerStreamTest, StreamsThatAreCancelledAtAnyMomentEndOnce) {
  constexpr int kStreams = 60;
  ServerStreamOptions options = Queue(4);
  server_.Serve(script_, options);
  const auto channel = server_.ConnectRelay("r1");
  std::vector<std::thread> clients;
  for (int thread = 0; thread < 3; ++thread) {
    clients.emplace_back([&, thread] {
      for (int i = 0; i < kStreams / 3; ++i) {
        Client client(channel);
        for (int sent = 0; sent < i % 4; ++sent) client.Send(sent);
        if (i % 4 == 2) client.Read();
        if (i % 5 == thread) {
          client.HalfClose();
          client.End().IgnoreError();
        }
      }
    });
  }
  // A second thread ends some of them at the same time.
  int ended = 0;
  for (int i = 0; i < kStreams; ++i) {
    const auto stream = script_.started.Take();
    ASSERT_TRUE(stream);
    if (i % 3 == 1) (*stream)->End(absl::AbortedError("by the server"));
    if (i % 3 == 2) (*stream)->Cancel(absl::AbortedError("by the server"));
  }
  for (std::thread& client : clients) client.join();
  server_.Stop();
  while (script_.ended.size() > 0) ended += script_.ended.Take().has_value() ? 1 : 0;
  EXPECT_EQ(ended, kStreams);
  EXPECT_EQ(server_.streams.Count(kRelayMethod), 0);
}

}  // namespace
}  // namespace muster
