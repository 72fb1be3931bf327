// Streams of a client, over real mutual TLS, to a server of the same engine.
#include "services/common/rpc/client_stream.h"

#include <grpcpp/server_builder.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/testing/stream_fixture.h"
#include "services/common/rpc/testing/unreadable_service.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using testing::Answer;
using testing::Mailbox;
using testing::RelayScript;
using testing::RelayStream;
using testing::StreamEnd;
using testing::StreamServer;

using Stream = ClientStream<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>;
using Owner = StreamOwner<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>;

constexpr char kMethod[] = "/muster.v1.HeartbeatService/RelayHeartbeats";
constexpr size_t kLarge = size_t{1} << 20;

v1::RelayHeartbeatsRequest Request(int number, size_t bytes = 0) {
  v1::RelayHeartbeatsRequest request;
  request.add_heard_ids(number);
  request.set_relay(std::string(bytes, 'x'));
  return request;
}

// The behaviour of a handler at the client, and the events it received.
struct ClientScript {
  std::function<void(Stream&)> on_start = [](Stream& stream) { stream.ReadNext(); };
  std::function<void(Stream&, v1::RelayHeartbeatsResponse)> on_message = [](Stream& stream, auto) {
    stream.ReadNext();
  };
  std::function<void(Stream&)> on_writable;
  Mailbox<int> answers;
  Mailbox<StreamEnd> ended;
};

class ClientHandler : public Stream::Handler {
 public:
  explicit ClientHandler(ClientScript& script) : script_(script) {}

  void OnStart(const std::shared_ptr<Stream>& stream) override {
    stream_ = stream;
    script_.on_start(*stream);
  }
  void OnMessage(v1::RelayHeartbeatsResponse message) override {
    script_.answers.Put(message.probes(0));
    script_.on_message(*stream_, std::move(message));
  }
  void OnWritable() override {
    if (script_.on_writable) script_.on_writable(*stream_);
  }
  void OnEnd(const absl::Status& status, EndedBy by) override { script_.ended.Put({status, by}); }

 private:
  ClientScript& script_;
  std::shared_ptr<Stream> stream_;
};

class ClientStreamTest : public ::testing::Test {
 protected:
  ClientStreamTest() {
    server_script_.on_start = [](RelayStream& stream) { stream.ReadNext(); };
    server_script_.on_message = [](RelayStream& stream, v1::RelayHeartbeatsRequest request) {
      stream.Send(Answer(request.heard_ids(0)));
      stream.ReadNext();
    };
  }

  void Serve() {
    ServerStreamOptions options;
    options.max_queued = 100;
    server_.Serve(server_script_, options);
  }

  std::unique_ptr<Owner> Start(StreamOptions options = {}, ClientStreamRuntime runtime = {}) {
    return std::make_unique<Owner>(Stream::Start(server_.ConnectRelay("r1"), kMethod, options,
                                                 std::make_shared<ClientHandler>(script_),
                                                 runtime));
  }

  RelayScript server_script_;
  StreamServer server_;
  ClientScript script_;
};

StreamOptions Queue(size_t messages) {
  StreamOptions options;
  options.max_queued = messages;
  return options;
}

TEST_F(ClientStreamTest, CallWithAnUnreadableMessageEndsWithItsOwner) {
  testing::UnreadableService service;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  auto stream = std::make_unique<Owner>(Stream::Start(server->InProcessChannel({}), kMethod, {},
                                                      std::make_shared<ClientHandler>(script_)));
  ASSERT_TRUE(testing::Await([&] { return (*stream)->ended(); }));
  EXPECT_FALSE(stream->AwaitEnd(absl::ZeroDuration())) << "the server leaves the call open";
  stream.reset();
  EXPECT_EQ(script_.ended.Take()->by, EndedBy::kThisSide);
}

TEST_F(ClientStreamTest, CallWithAnUnreadableMessageEndsWithoutItsOwner) {
  testing::UnreadableService service;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  const Owner stream(Stream::Start(server->InProcessChannel({}), kMethod,
                                   {.end_within = absl::Milliseconds(10)},
                                   std::make_shared<ClientHandler>(script_)));
  EXPECT_EQ(ReasonOf(script_.ended.Take()->status), "UNREADABLE_ANSWER");
}

TEST_F(ClientStreamTest, MessagesAreSentInOrderAndTheHalfCloseAfterThem) {
  Serve();
  const auto stream = Start(Queue(100));
  for (int i = 0; i < 20; ++i) EXPECT_EQ((*stream)->Send(Request(i)), Sent::kQueued);
  (*stream)->HalfClose();
  EXPECT_EQ((*stream)->Send(Request(99)), Sent::kEnded);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(script_.answers.Take(), i);
  const auto end = script_.ended.Take();
  EXPECT_TRUE(end->status.ok());
  EXPECT_EQ(end->by, EndedBy::kPeer);
}

TEST_F(ClientStreamTest, LastMessageHalfClosesTheStream) {
  Serve();
  script_.on_start = [](Stream& stream) {
    stream.ReadNext();
    stream.SendLast(Request(7));
  };
  const auto stream = Start();
  EXPECT_EQ(script_.answers.Take(), 7);
  EXPECT_TRUE(script_.ended.Take()->status.ok());
}

TEST_F(ClientStreamTest, ErrorOfTheServerReachesTheHandlerWithItsDetails) {
  server_script_.on_message = [](RelayStream& stream, const v1::RelayHeartbeatsRequest&) {
    stream.End(errors::Overloaded());
  };
  Serve();
  const auto stream = Start();
  (*stream)->Send(Request(1));
  const auto end = script_.ended.Take();
  EXPECT_EQ(ReasonOf(end->status), "OVERLOADED");
  EXPECT_EQ(end->by, EndedBy::kPeer);
}

TEST_F(ClientStreamTest, SilentServerIsCancelledAtTheDeadline) {
  server_script_.on_message = [](RelayStream&, const v1::RelayHeartbeatsRequest&) {};
  Serve();
  FakeClock clock;
  const auto stream = Start({}, {.timers = &clock});
  (*stream)->Send(Request(1));
  ASSERT_TRUE(server_script_.started.Take());
  clock.Advance(absl::Seconds(10));
  const auto end = script_.ended.Take();
  EXPECT_EQ(ReasonOf(end->status), "NO_FIRST_MESSAGE");
  EXPECT_EQ(end->by, EndedBy::kThisSide);
  EXPECT_EQ(server_script_.ended.Take()->by, EndedBy::kPeer);
}

TEST_F(ClientStreamTest, ServerThatDoesNotReadFillsTheQueueAndNoMore) {
  server_script_.on_start = nullptr;
  Serve();
  int sent = 0;
  Mailbox<int> full;
  const auto fill = [&](Stream& stream) {
    while (sent < 20) {
      if (stream.Send(Request(sent, kLarge)) != Sent::kQueued) return full.Put(sent);
      ++sent;
    }
    stream.HalfClose();
  };
  script_.on_start = [&](Stream& stream) {
    stream.ReadNext();
    fill(stream);
  };
  script_.on_writable = fill;
  const auto stream = Start(Queue(2));
  ASSERT_TRUE(full.Take());
  (*server_script_.started.Take())->ReadNext();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(script_.answers.Take(), i);
  EXPECT_TRUE(script_.ended.Take()->status.ok());
}

TEST_F(ClientStreamTest, ServersAnswerAndStatusAreReadAfterAFailedWrite) {
  server_script_.on_start = [](RelayStream& stream) {
    stream.Send(Answer(1));
    stream.End(absl::AbortedError("enough"));
  };
  Serve();
  Mailbox<int> go;
  script_.on_start = [](Stream& stream) {
    for (int i = 0; i < 30; ++i) stream.Send(Request(i, kLarge));
  };
  const auto stream = Start(Queue(100));
  while ((*stream)->Send(Request(0)) != Sent::kEnded) std::this_thread::yield();
  (*stream)->ReadNext();
  EXPECT_EQ(script_.answers.Take(), 1);
  EXPECT_EQ(script_.ended.Take()->status, absl::AbortedError("enough"));
}

TEST_F(ClientStreamTest, CancelEndsTheStreamOnBothSides) {
  Serve();
  const auto stream = Start();
  (*stream)->Send(Request(1));
  EXPECT_EQ(script_.answers.Take(), 1);
  (*stream)->Cancel(absl::AbortedError("enough"));
  const auto end = script_.ended.Take();
  EXPECT_EQ(end->status, absl::AbortedError("enough"));
  EXPECT_EQ(end->by, EndedBy::kThisSide);
  EXPECT_EQ(server_script_.ended.Take()->by, EndedBy::kPeer);
}

TEST_F(ClientStreamTest, OwnerWaitsForTheLastCallback) {
  Serve();
  for (int i = 0; i < 20; ++i) {
    Start(Queue(3));
    EXPECT_EQ(script_.ended.size(), 1u);
    EXPECT_TRUE(absl::IsCancelled(script_.ended.Take()->status));
  }
}

TEST_F(ClientStreamTest, OwnerMayAwaitTheEnd) {
  Serve();
  const auto stream = Start();
  EXPECT_FALSE(stream->AwaitEnd(absl::ZeroDuration()));
  (*stream)->SendLast(Request(1));
  EXPECT_TRUE(stream->AwaitEnd(absl::Seconds(30)));
  EXPECT_TRUE(script_.ended.Take()->status.ok());
}

TEST_F(ClientStreamTest, StreamWithoutAnOwnerEndsWithItsHandler) {
  Serve();
  std::weak_ptr<Stream> weak;
  std::shared_ptr<StreamRelease> release;
  {
    const auto stream = Stream::Start(server_.ConnectRelay("r1"), kMethod, {},
                                      std::make_shared<ClientHandler>(script_));
    weak = stream;
    release = stream->release();
    stream->SendLast(Request(1));
  }
  release->Wait();
  EXPECT_TRUE(weak.expired());
  EXPECT_TRUE(script_.ended.Take()->status.ok());
}

TEST_F(ClientStreamTest, CallbacksRunOnTheExecutorIfAsked) {
  Serve();
  Executor executor({.name = "client", .threads = 1, .max_queue = 8});
  Mailbox<std::thread::id> on;
  script_.on_message = [&](Stream& stream, const v1::RelayHeartbeatsResponse&) {
    on.Put(std::this_thread::get_id());
    stream.ReadNext();
  };
  StreamOptions options;
  options.on_executor = true;
  const auto stream = Start(options, {.executor = &executor});
  (*stream)->Send(Request(1));
  Mailbox<std::thread::id> thread;
  ASSERT_TRUE(executor.Post([&] { thread.Put(std::this_thread::get_id()); }));
  EXPECT_EQ(on.Take(), thread.Take());
}

TEST_F(ClientStreamTest, LostServerEndsTheStream) {
  Serve();
  const auto stream = Start();
  (*stream)->Send(Request(1));
  EXPECT_EQ(script_.answers.Take(), 1);
  server_.Stop();
  const auto end = script_.ended.Take();
  EXPECT_FALSE(end->status.ok());
  EXPECT_EQ(end->by, EndedBy::kPeer);
}

}  // namespace
}  // namespace muster
