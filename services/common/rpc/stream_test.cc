// Streams from sources, over real mutual TLS.
#include "services/common/rpc/stream.h"

#include <grpcpp/grpcpp.h>

#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster {
namespace {

using testing::Mailbox;
using testing::StreamServer;
using Message = v1::FollowChangesResponse;
using NextMessage = std::function<absl::StatusOr<Pull>(Message*)>;

class Source : public StreamSource<Message> {
 public:
  explicit Source(NextMessage next) : next_(std::move(next)) {}
  absl::StatusOr<Pull> Next(Message* message) override { return next_(message); }

 private:
  const NextMessage next_;
};

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() {
    server_.follow_changes = [this](grpc::CallbackServerContext* context, auto) {
      return StartSourceStream<Message>(
          server_.runtime(), context, "/muster.v1.ChangeService/FollowChanges", limits_,
          [this](Call& call, std::function<void()> wake)
              -> absl::StatusOr<std::unique_ptr<StreamSource<Message>>> {
            if (auto s = call.Authorize(Resource::Fleet()); !s.ok()) return s;
            wakes_.Put(std::move(wake));
            if (!refuse_.ok()) return refuse_;
            return std::make_unique<Source>(next_);
          });
    };
  }

  void Follow() {
    stub_ = v1::ChangeService::NewStub(server_.ConnectStatus());
    reader_ = stub_->FollowChanges(&context_, {});
  }
  // The cursor of the next message, -1 at the end.
  int64_t Read() {
    Message message;
    return reader_->Read(&message) ? message.cursor() : -1;
  }
  absl::Status End() { return FromGrpc(reader_->Finish()); }

  // Opens a stream, which stays open until its context is cancelled or destroyed.
  static absl::Status Hold(v1::ChangeService::Stub& stub, grpc::ClientContext& context) {
    auto reader = stub.FollowChanges(&context, {});
    Message message;
    return reader->Read(&message) ? absl::OkStatus() : FromGrpc(reader->Finish());
  }

  StreamLimits limits_;
  NextMessage next_;
  absl::Status refuse_;
  Mailbox<std::function<void()>> wakes_;
  StreamServer server_;
  std::unique_ptr<v1::ChangeService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Message>> reader_;
};

TEST_F(StreamTest, SourceIsAskedUntilItsEnd) {
  next_ = [n = 0](Message* message) mutable -> absl::StatusOr<Pull> {
    if (n == 3) return Pull::kEnd;
    message->set_cursor(n++);
    return Pull::kMessage;
  };
  Follow();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Read(), i);
  EXPECT_EQ(Read(), -1);
  EXPECT_TRUE(End().ok());
}

TEST_F(StreamTest, WaitingSourceIsAskedAgainWhenWoken) {
  Mailbox<int64_t> ready;
  Mailbox<int> asked;
  next_ = [&](Message* message) -> absl::StatusOr<Pull> {
    asked.Put(1);
    if (ready.size() == 0) return Pull::kWait;
    message->set_cursor(*ready.Take());
    return Pull::kMessage;
  };
  Follow();
  const auto wake = *wakes_.Take();
  for (int i = 0; i < 50; ++i) {
    ready.Put(i);
    wake();
    EXPECT_EQ(Read(), i);
  }
  context_.TryCancel();
  EXPECT_EQ(Read(), -1);
  server_.Stop();
  const size_t before = asked.size();
  wake();  // harmless after the end
  EXPECT_EQ(asked.size(), before);
}

TEST_F(StreamTest, WakeDuringNextLosesNoMessage) {
  next_ = [&, n = 0,
           wake = std::function<void()>()](Message* message) mutable -> absl::StatusOr<Pull> {
    if (wake == nullptr) wake = *wakes_.Take();
    wake();
    if (n == 50) return Pull::kEnd;
    message->set_cursor(n++);
    return Pull::kMessage;
  };
  Follow();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Read(), i);
  EXPECT_EQ(Read(), -1);
  EXPECT_TRUE(End().ok());
}

TEST_F(StreamTest, SourceGetsItsLastMessageBack) {
  next_ = [](Message* message) -> absl::StatusOr<Pull> {
    if (message->cursor() == 5) return Pull::kEnd;
    message->set_cursor(message->cursor() + 1);
    return Pull::kMessage;
  };
  Follow();
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(Read(), i);
  EXPECT_EQ(Read(), -1);
  EXPECT_TRUE(End().ok());
}

TEST_F(StreamTest, ErrorOfASourceEndsTheStream) {
  next_ = [](Message*) { return absl::DataLossError("unreadable"); };
  Follow();
  EXPECT_EQ(Read(), -1);
  EXPECT_EQ(End(), absl::DataLossError("unreadable"));
}

TEST_F(StreamTest, RefusedCallHasNoSource) {
  refuse_ = absl::NotFoundError("no such run");
  Follow();
  EXPECT_EQ(Read(), -1);
  EXPECT_EQ(End(), absl::NotFoundError("no such run"));
}

// A stream that its caller does not read holds memory.
TEST_F(StreamTest, ThirdStreamOfACallerIsRefusedButNotOfAService) {
  limits_.of_caller = 2;
  next_ = [](Message*) { return Pull::kMessage; };
  const auto relay = v1::ChangeService::NewStub(server_.ConnectRelay("r1"));
  const auto status = v1::ChangeService::NewStub(server_.ConnectStatus());
  std::array<grpc::ClientContext, 6> contexts;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Hold(*relay, contexts[i]), absl::OkStatus());
  EXPECT_EQ(ReasonOf(Hold(*relay, contexts[2])), "TOO_MANY_STREAMS_OF_CALLER");
  for (int i = 3; i < 6; ++i) EXPECT_EQ(Hold(*status, contexts[i]), absl::OkStatus());
  for (grpc::ClientContext& context : contexts) context.TryCancel();
}

TEST_F(StreamTest, CallerHasAtMost64Streams) {
  next_ = [](Message* message) -> absl::StatusOr<Pull> {
    if (message->cursor() == 1) return Pull::kWait;
    message->set_cursor(1);
    return Pull::kMessage;
  };
  for (const auto& [relay, limits] :
       {std::pair("r1", kFileStreams), std::pair("r2", kWatchStreams)}) {
    limits_ = limits;
    const auto stub = v1::ChangeService::NewStub(server_.ConnectRelay(relay));
    std::array<grpc::ClientContext, 65> contexts;
    for (int i = 0; i < 64; ++i) EXPECT_EQ(Hold(*stub, contexts[i]), absl::OkStatus());
    EXPECT_EQ(ReasonOf(Hold(*stub, contexts[64])), "TOO_MANY_STREAMS_OF_CALLER");
    for (grpc::ClientContext& context : contexts) context.TryCancel();
  }
}

}  // namespace
}  // namespace muster
