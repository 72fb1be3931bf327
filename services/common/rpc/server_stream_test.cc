// Bidirectional streams at a server, over real mutual TLS.
#include "services/common/rpc/server_stream.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/client_stream.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/stuck_readers.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster {
namespace {

using testing::Answer;
using testing::RelayScript;
using testing::RelayStream;
using testing::StreamServer;

constexpr char kMethod[] = "/muster.v1.HeartbeatService/RelayHeartbeats";
constexpr size_t kLarge = size_t{1} << 20;  // more than gRPC takes of a client that does not read

// A client whose reads and writes the test starts.
class Client {
 public:
  explicit Client(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::HeartbeatService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_ = stub_->RelayHeartbeats(&context_);
  }
  ~Client() { context_.TryCancel(); }

  void Send(int number = 0) {
    v1::RelayHeartbeatsRequest request;
    request.add_heard_ids(number);
    stream_->Write(request);
  }
  void HalfClose() { stream_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }

  // The number of the next answer, -1 at the end.
  int Read() {
    v1::RelayHeartbeatsResponse response;
    return stream_->Read(&response) ? response.probes(0) : -1;
  }
  absl::Status End() {
    while (Read() >= 0) {
    }
    return FromGrpc(stream_->Finish());
  }

 private:
  const std::unique_ptr<v1::HeartbeatService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>>
      stream_;
};

class ServerStreamTest : public ::testing::Test {
 protected:
  ServerStreamTest() {
    script_.on_start = [](RelayStream& stream) { stream.ReadNext(); };
    script_.on_message = [](RelayStream& stream, v1::RelayHeartbeatsRequest request) {
      stream.Send(Answer(request.heard_ids(0)));
      stream.ReadNext();
    };
  }

  // Waits until the call of a client that takes no message is dropped.
  void AwaitDropped() {
    while (DropStuckReaders(server_.canceller, SystemClock(), absl::ZeroDuration()) == 0) {
      std::this_thread::yield();
    }
  }

  RelayScript script_;
  StreamServer server_;
};

ServerStreamOptions Queue(size_t messages) {
  ServerStreamOptions options;
  options.max_queued = messages;
  return options;
}

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
  EXPECT_EQ(server_.streams.Count(kMethod), 0);
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
      UnreadableClient::Stream::Start(server_.ConnectRelay("r1"), kMethod, {}, client));
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
  EXPECT_EQ(server_.streams.Count(kMethod), 1);
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

TEST_F(ServerStreamTest, CancelEndsAStreamWhoseClientDoesNotRead) {
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

TEST_F(ServerStreamTest, StuckReaderIsDropped) {
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

TEST_F(ServerStreamTest, StreamOfARevokedCallerEndsWithTheReason) {
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

TEST_F(ServerStreamTest, StuckReaderThatIsRevokedIsCancelled) {
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
TEST_F(ServerStreamTest, CallOfARevokedCallerIsCancelledAfterASecond) {
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

TEST_F(ServerStreamTest, StuckReaderOfTheLastMessageIsDropped) {
  script_.on_start = [](RelayStream& stream) { stream.SendAndEnd(Answer(1, 8 * kLarge - 99)); };
  server_.Serve(script_);
  Client client(server_.ConnectRelay("r1"));
  ASSERT_TRUE(script_.started.Take());
  AwaitDropped();
  EXPECT_TRUE(script_.ended.Take());
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
  EXPECT_EQ(server_.streams.Count(kMethod), 0);
}

}  // namespace
}  // namespace muster
