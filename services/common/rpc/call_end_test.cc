#include "services/common/rpc/call_end.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <memory>

#include "muster/v1/jobs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/testing/unreadable_service.h"

namespace muster {
namespace {

TEST(CallEndTest, CallThatIsLeftOpenAfterAnUnreadableMessageIsCancelled) {
  testing::UnreadableService service;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = v1::JobService::NewStub(server->InProcessChannel({}));
  grpc::ClientContext context;
  const auto reader = stub->WatchJob(&context, v1::WatchJobRequest());
  v1::WatchJobResponse response;
  EXPECT_FALSE(reader->Read(&response));
  const absl::Status end =
      AwaitCallEnd(context, [&] { return reader->Finish(); }, absl::Milliseconds(10));
  EXPECT_EQ(ReasonOf(end), "UNREADABLE_ANSWER");
}

TEST(CallEndTest, StatusOfTheServiceIsReturned) {
  grpc::ClientContext context;
  const absl::Status end =
      AwaitCallEnd(context, [] { return grpc::Status(grpc::StatusCode::NOT_FOUND, "no job"); });
  EXPECT_EQ(end, absl::NotFoundError("no job"));
}

}  // namespace
}  // namespace muster
