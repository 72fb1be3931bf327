// Server streaming and client streaming methods, over real mutual TLS.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/rpc/server_stream.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster {
namespace {

using testing::ScriptedHandler;
using testing::StreamScript;
using testing::StreamServer;

class OneWayServerStreamTest : public ::testing::Test {
 protected:
  StreamServer server_;
};

TEST_F(OneWayServerStreamTest, ServerStreamingMethodIsCountedFromItsStart) {
  using Handler = ServerStreamHandler<void, v1::FollowChangesResponse>;
  struct Follow : Handler {
    void OnStart(const std::shared_ptr<ServerStream<v1::FollowChangesResponse>>& stream) override {
      ASSERT_TRUE(stream->call().Authorize(Resource::Fleet()).ok());
      v1::FollowChangesResponse message;
      message.set_cursor(7);
      stream->Send(message);
      started.Put(stream);
    }
    testing::Mailbox<std::shared_ptr<ServerStream<v1::FollowChangesResponse>>> started;
  };
  const auto handler = std::make_shared<Follow>();
  server_.follow_changes = [&](grpc::CallbackServerContext* context, auto) {
    return StartServerStream<void, v1::FollowChangesResponse>(
        server_.runtime(), context, "/muster.v1.ChangeService/FollowChanges", {}, handler);
  };
  const auto stub = v1::ChangeService::NewStub(server_.ConnectStatus());
  grpc::ClientContext context;
  const auto reader = stub->FollowChanges(&context, {});
  v1::FollowChangesResponse message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.cursor(), 7);
  EXPECT_EQ(server_.streams.Count("/muster.v1.ChangeService/FollowChanges"), 1);
  (*handler->started.Take())->End(absl::AbortedError("enough"));
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_EQ(FromGrpc(reader->Finish()), absl::AbortedError("enough"));
}

TEST_F(OneWayServerStreamTest, ClientStreamingMethodAnswersAtItsEnd) {
  using Handler = ScriptedHandler<v1::UploadShareRequest, void>;
  StreamScript<v1::UploadShareRequest, void> script;
  int messages = 0;
  script.on_start = [](ServerStream<void>& stream) { stream.ReadNext(); };
  script.on_message = [&](ServerStream<void>& stream, const v1::UploadShareRequest&) {
    ++messages;
    stream.ReadNext();
  };
  server_.upload_share = [&](grpc::CallbackServerContext* context, v1::Share* response) {
    script.on_half_close = [&, response](ServerStream<void>& stream) {
      response->set_reason(std::to_string(messages));
      stream.End(absl::OkStatus());
    };
    return StartServerStream<v1::UploadShareRequest, void>(server_.runtime(), context,
                                                           "/muster.v1.ShareService/UploadShare",
                                                           {}, std::make_shared<Handler>(script));
  };
  const auto stub = v1::ShareService::NewStub(server_.ConnectNode("n1"));
  grpc::ClientContext context;
  v1::Share share;
  const auto writer = stub->UploadShare(&context, &share);
  for (int i = 0; i < 3; ++i) writer->Write({});
  writer->WritesDone();
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(share.reason(), "3");
  EXPECT_TRUE(script.ended.Take()->status.ok());
  server_.Stop();
}

}  // namespace
}  // namespace muster
