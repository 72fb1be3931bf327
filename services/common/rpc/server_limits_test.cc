// The bounds of the memory of a server: of messages, of requests that wait, and of messages in
// transit.
#include <grpcpp/client_context.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/stuck_readers.h"
#include "services/common/rpc/testing/raw_http2_client.h"
#include "services/common/rpc/testing/stream_fixture.h"
#include "testing/fixtures/await.h"

namespace muster::testing {
namespace {

constexpr char kOpenShare[] = "/muster.v1.ShareService/OpenShare";
constexpr char kGetShare[] = "/muster.v1.ShareService/GetShare";

// A call of OpenShare whose request has about `bytes`.
class OpenShareCall {
 public:
  OpenShareCall(const std::shared_ptr<grpc::Channel>& channel, size_t bytes)
      : stub_(v1::ShareService::NewStub(channel)) {
    request_.mutable_file()->set_signature(std::string(bytes, 'x'));
    context_.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    stub_->async()->OpenShare(&context_, &request_, &response_, [this](const grpc::Status& status) {
      done_.set_value(FromGrpc(status));
    });
  }

  absl::Status Await() { return done_.get_future().get(); }

 private:
  std::unique_ptr<v1::ShareService::Stub> stub_;
  grpc::ClientContext context_;
  v1::OpenShareRequest request_;
  v1::OpenShareResponse response_;
  std::promise<absl::Status> done_;
};

TEST(ServerLimitsTest, MessageAboveTheLimitIsRefused) {
  RpcServerOptions options;
  options.max_message_bytes = 100'000;
  StreamServer server(64, std::move(options));
  server.open_share = [&](auto* context, const auto* request, auto* response) {
    return Answer(server.runtime(), context, kOpenShare, {*request, response},
                  [](Call& call) { return call.Authorize(Resource::Own()); });
  };
  const auto channel = server.ConnectNode("n1");
  EXPECT_EQ(OpenShareCall(channel, 99'000).Await(), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(OpenShareCall(channel, 100'001).Await()));
}

TEST(ServerLimitsTest, MessageAboveTheLimitOfItsRoleIsRefusedWhenItsLengthArrives) {
  StreamServer server;
  std::promise<void> opened;
  server.open_share = [&](auto* context, const auto* request, auto* response) {
    opened.set_value();
    return Answer(server.runtime(), context, kOpenShare, {*request, response},
                  [](Call& call) { return call.Authorize(Resource::Own()); });
  };
  constexpr size_t kSize = 3 << 20;
  const absl::Status refused = OpenShareCall(server.ConnectNode("n1"), kSize).Await();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(refused.message().find("MESSAGE_TOO_LARGE: ") != absl::string_view::npos) << refused;

  // A peer that sends only the length, and then another call on its connection.
  const auto credential = server.IssueNode("n2");
  RawHttp2Client peer(server.port(), credential.chain, credential.key);
  EXPECT_TRUE(peer.AckSettings());
  const std::string length("\0\0\x30\0\0", 5);
  EXPECT_TRUE(peer.Send(peer.NextHeaders(kOpenShare) +
                        Http2Frame(FrameType::kData, 0, peer.stream(), length)));
  EXPECT_TRUE(peer.AwaitBytes("MESSAGE_TOO_LARGE: "));
  EXPECT_TRUE(
      peer.Send(peer.NextHeaders(kOpenShare) +
                Http2Frame(FrameType::kData, kEndStream, peer.stream(), std::string(5, '\0'))));
  opened.get_future().wait();
}

TEST(ServerLimitsTest, RelayMaySendLargerMessages) {
  RelayScript script;  // outlives the calls
  std::promise<size_t> received;
  script.on_start = [](RelayStream& stream) { stream.ReadNext(); };
  script.on_message = [&](RelayStream& stream, const v1::RelayHeartbeatsRequest& message) {
    received.set_value(message.ByteSizeLong());
    stream.End(absl::OkStatus());
  };
  StreamServer server;
  server.Serve(script, {});
  const auto stub = v1::HeartbeatService::NewStub(server.ConnectRelay("r1"));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  v1::RelayHeartbeatsRequest request;
  request.add_senders()->set_attach_statement(std::string(3 << 20, 'x'));
  const auto stream = stub->RelayHeartbeats(&context);
  EXPECT_TRUE(stream->Write(request));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::OK);
  EXPECT_EQ(received.get_future().get(), request.ByteSizeLong());
}

TEST(ServerLimitsTest, StreamsOfTheRoleAreAnnounced) {
  StreamServer server;
  const auto credential = server.IssueNode("n1");
  RawHttp2Client peer(server.port(), credential.chain, credential.key);
  constexpr uint16_t kMaxConcurrentStreams = 3;
  EXPECT_TRUE(peer.AwaitBytes(Http2Setting(kMaxConcurrentStreams, kMaxStreamsOfNode)));
}

TEST(ServerLimitsTest, WaitingRequestsOfOneIdentityAreBoundedByTheirBytes) {
  StreamServer server;
  server.open_share = [&](auto* context, const auto* request, auto* response) {
    return Answer(server.runtime(), context, kOpenShare, {*request, response},
                  [](Call& call) { return call.Authorize(Resource::Own()); });
  };
  const auto channel = server.ConnectNode("n1");
  std::promise<void> release;
  std::promise<void> held;
  ASSERT_TRUE(server.executor.Post([&, future = release.get_future().share()] {
    held.set_value();
    future.wait();
  }));
  held.get_future().wait();
  OpenShareCall first(channel, 60'000);
  EXPECT_TRUE(Await([&] { return server.request_memory.reserved() > 0; }));
  OpenShareCall second(channel, 60'000);
  EXPECT_EQ(ReasonOf(second.Await()), "TOO_MANY_REQUEST_BYTES");
  // Small requests, and those of other identities, are accepted.
  OpenShareCall small(channel, 1'000);
  OpenShareCall other(server.ConnectNode("n2"), 60'000);
  release.set_value();
  EXPECT_EQ(first.Await(), absl::OkStatus());
  EXPECT_EQ(small.Await(), absl::OkStatus());
  EXPECT_EQ(other.Await(), absl::OkStatus());
  server.Stop();
  EXPECT_EQ(server.request_memory.reserved(), 0);
}

TEST(ServerLimitsTest, CallsOfOneIdentityDoNotDelayThoseOfAnother) {
  StreamServer server({.name = "test", .threads = 2, .threads_of_owner = 1}, {});
  std::promise<void> release;
  server.open_share = [&, held = release.get_future().share()](auto* context, const auto* request,
                                                               auto* response) {
    return Answer(server.runtime(), context, kOpenShare, {*request, response}, [held](Call& call) {
      if (call.holder().ends_with("/many")) held.wait();
      return call.Authorize(Resource::Own());
    });
  };
  const auto channel = server.ConnectNode("many");
  std::vector<std::unique_ptr<OpenShareCall>> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(std::make_unique<OpenShareCall>(channel, 0));
  EXPECT_TRUE(Await([&] { return server.executor.queued() == 19; }));
  const auto other = server.ConnectNode("other");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(OpenShareCall(other, 0).Await(), absl::OkStatus());
  EXPECT_EQ(server.executor.queued(), 19u);
  release.set_value();
  for (const auto& call : calls) EXPECT_EQ(call->Await(), absl::OkStatus());
}

// A server whose answers to GetShare have about 40,000 bytes, and a peer that grants no window for
// them, so that gRPC holds them.
class UnreadAnswersTest : public ::testing::Test {
 protected:
  UnreadAnswersTest() {
    server_.get_share = [this](auto* context, const auto* request, auto* response) {
      return Answer(server_.runtime(), context, kGetShare, {*request, response},
                    [response](Call& call) {
                      response->set_reason(std::string(kAnswer, 'x'));
                      return call.Authorize(Resource::Own());
                    });
    };
    server_.open_share = [this](auto* context, const auto* request, auto* response) {
      return Answer(server_.runtime(), context, kOpenShare, {*request, response},
                    [this, response](Call& call) {
                      ++opened_;
                      response->set_upload_id(std::string(kAnswer, 'x'));
                      if (before_answer_) before_answer_();
                      return call.Authorize(Resource::Own());
                    });
    };
  }

  // Sends calls whose answers the peer does not read, until its identity is at its limit.
  void Begin() {
    const auto credential = server_.IssueNode("n1");
    peer_ = std::make_unique<RawHttp2Client>(server_.port(), credential.chain, credential.key);
    EXPECT_TRUE(peer_->AckSettings());
    constexpr uint16_t kInitialWindow = 4;
    std::string calls = Http2Frame(FrameType::kSettings, 0, 0, Http2Setting(kInitialWindow, 0));
    for (int i = 0; i < 10; ++i) {
      calls += peer_->NextHeaders(kGetShare);
      calls += Http2Frame(FrameType::kData, kEndStream, peer_->stream(), std::string(5, '\0'));
    }
    EXPECT_TRUE(peer_->Send(calls));
    // Two of them are within the limit of an identity.
    EXPECT_TRUE(Await([&] { return server_.answer_memory.reserved() > 2 * kAnswer; }));
  }

  absl::Status CallAs(const std::string& node) {
    const auto stub = v1::ShareService::NewStub(server_.ConnectNode(node));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    v1::Share response;
    return FromGrpc(stub->GetShare(&context, {}, &response));
  }

  static constexpr int64_t kAnswer = 40'000;
  std::atomic<int> opened_ = 0;
  std::function<void()> before_answer_;  // of OpenShare
  StreamServer server_{{.name = "test", .threads = 2}, {}};
  std::unique_ptr<RawHttp2Client> peer_;
};

TEST_F(UnreadAnswersTest, AreBoundedByTheirBytes) {
  Begin();
  EXPECT_EQ(ReasonOf(CallAs("n1")), "TOO_MANY_ANSWER_BYTES");
  EXPECT_EQ(CallAs("n2"), absl::OkStatus());
  EXPECT_TRUE(Await([&] { return server_.answer_memory.reserved() < 3 * kAnswer; }));
  server_.Stop();
  EXPECT_EQ(server_.answer_memory.reserved(), 0);
}

TEST_F(UnreadAnswersTest, RefuseCallsWithEffectsBeforeTheirEffects) {
  Begin();
  const auto held = server_.answer_memory.Reserve("spiffe://fleet-0badcafe.muster/node/n1", 17'000);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(ReasonOf(OpenShareCall(server_.ConnectNode("n1"), 0).Await()), "TOO_MANY_ANSWER_BYTES");
  EXPECT_EQ(opened_, 0);
}

TEST_F(UnreadAnswersTest, DoNotRefuseCallsThatHaveTakenEffect) {
  before_answer_ = [this] { Begin(); };
  EXPECT_EQ(OpenShareCall(server_.ConnectNode("n1"), 0).Await(), absl::OkStatus());
  EXPECT_EQ(opened_, 1);
}

TEST_F(UnreadAnswersTest, EndTheirCallsAtTheLimitOfStuckReaders) {
  Begin();
  FakeClock later;
  later.Advance(SystemClock().MonotonicNow() - later.MonotonicNow());
  EXPECT_EQ(DropStuckReaders(server_.canceller, later, kStuckReader), 0);
  later.Advance(kStuckReader + absl::Minutes(1));
  EXPECT_TRUE(Await([&] {
    DropStuckReaders(server_.canceller, later, kStuckReader);
    return server_.answer_memory.reserved() == 0;
  }));
  EXPECT_EQ(CallAs("n1"), absl::OkStatus());
}

TEST_F(UnreadAnswersTest, AreNotCountedAfterTheEndOfTheirConnection) {
  Begin();
  peer_.reset();
  EXPECT_TRUE(Await([&] { return server_.answer_memory.reserved() == 0; }));
  EXPECT_EQ(CallAs("n1"), absl::OkStatus());
}

// Streams whose messages the server does not read hold them in gRPC.
TEST(ServerLimitsTest, ConnectionThatFillsTheMemoryOfTheServerIsEnded) {
  RpcServerOptions options;
  options.memory_bytes = 2 << 20;
  RelayScript script;  // outlives the calls
  StreamServer server(64, std::move(options));
  server.Serve(script, {});
  const auto channel = server.ConnectRelay("r1");
  const auto stub = v1::HeartbeatService::NewStub(channel);
  // The status of the first stream that ends.
  struct FirstEnd {
    std::once_flag once;
    std::promise<absl::Status> status;
  } first;
  struct Stream : grpc::ClientBidiReactor<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse> {
    Stream(v1::HeartbeatService::Stub& stub, FirstEnd& given) : first(given) {
      request.add_senders()->set_attach_statement(std::string(1 << 20, 'x'));
      context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
      stub.async()->RelayHeartbeats(&context, this);
      StartWrite(&request);
      StartCall();
    }
    void OnDone(const grpc::Status& status) override {
      std::call_once(first.once, [&] { first.status.set_value(FromGrpc(status)); });
      done.set_value();
    }
    FirstEnd& first;
    grpc::ClientContext context;
    v1::RelayHeartbeatsRequest request;
    std::promise<void> done;
  };
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 200; ++i) streams.push_back(std::make_unique<Stream>(*stub, first));
  const absl::Status status = first.status.get_future().get();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(absl::IsDeadlineExceeded(status)) << status;
  for (const auto& stream : streams) stream->context.TryCancel();
  for (const auto& stream : streams) stream->done.get_future().wait();
}

TEST(ServerLimitsTest, CallsOfAnEarlierConnectionAreNotCountedForALaterOne) {
  RpcServerOptions options;
  options.open_listen = "127.0.0.1:0";
  StreamServer server(64, std::move(options));
  server.open_share = [](auto* context, const auto*, auto*) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  };
  // Two connections would exceed the burst together.
  constexpr int kCalls = static_cast<int>(kOpenCallBurst * 3 / 4);
  for (int connection = 0; connection < 20; ++connection) {
    const auto channel = server.ConnectOpen();
    for (int call = 0; call < kCalls; ++call) {
      ASSERT_EQ(OpenShareCall(channel, 0).Await(), absl::OkStatus()) << connection;
    }
  }
}

}  // namespace
}  // namespace muster::testing
