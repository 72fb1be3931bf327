// Calls of a node for the jobs service, through a relay with real mutual TLS.
#include "services/relay/proxy/content_forward.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "muster/v1/contents.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/status.h"
#include "services/relay/testing/forward_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using testing::Await;

// The jobs service as a relay sees it. Holds calls while `holding`.
class FakeContents final : public v1::ContentService::Service {
 public:
  grpc::Status ReadContent(grpc::ServerContext* context, const v1::ReadContentRequest* request,
                           v1::ReadContentResponse* response) override {
    ++calls;
    const auto uri = context->client_metadata().find(kForwardedIdentity);
    if (uri != context->client_metadata().end()) {
      response->set_data(std::string(uri->second.data(), uri->second.size()));
    }
    response->set_size(request->offset());
    Await([&] { return !holding || context->IsCancelled(); });
    return grpc::Status::OK;
  }

  std::atomic<int> calls = 0;
  std::atomic<bool> holding = false;
};

class ContentForwardTest : public testing::ForwardTestBase {
 protected:
  void SetUp() override {
    ForwardTestBase::SetUp();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&jobs_);
    server_ = builder.BuildAndStart();
    relay_.upstream().ConnectJobs(grpc::CreateChannel("127.0.0.1:" + std::to_string(port_),
                                                      grpc::InsecureChannelCredentials()));
  }
  void TearDown() override {
    jobs_.holding = false;
    relay_.Stop();
    server_->Shutdown();
  }

  absl::StatusOr<v1::ReadContentResponse> Read() {
    v1::ReadContentRequest request;
    request.set_offset(7);
    v1::ReadContentResponse response;
    grpc::ClientContext context;
    const absl::Status status = FromGrpc(v1::ContentService::NewStub(relay_.Connect(node_))
                                             ->ReadContent(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  FakeContents jobs_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ContentForwardTest, NodeReadsInItsOwnName) {
  const auto response = Read();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->size(), 7);
  EXPECT_EQ(response->data(), "spiffe://" + fleet_.name() + "/node/n1");
}

TEST_F(ContentForwardTest, UnreachableJobsServiceIsAReasonOfItsOwnThatCanBeRetried) {
  server_->Shutdown();
  const absl::Status status = Read().status();
  EXPECT_EQ(ReasonOf(status), "JOBS_UNREACHABLE") << status;
  EXPECT_TRUE(RetryAfterOf(status));
  relay_.upstream().ConnectJobs(nullptr);
  EXPECT_EQ(ReasonOf(Read().status()), "RELAY_CUT_OFF");
}

TEST_F(ContentForwardTest, NodeThatIsNotAttachedIsRefused) {
  relay_.upstream().Detach("n1");
  EXPECT_EQ(ReasonOf(Read().status()), "NOT_ATTACHED");
  EXPECT_EQ(jobs_.calls, 0);
}

TEST_F(ContentForwardTest, WaitingCallsAreLimitedAndDelayNoOtherCall) {
  jobs_.holding = true;
  std::vector<std::thread> reads;
  for (int i = 0; i < kContentCalls.calls_of_one; ++i) {
    reads.emplace_back([this] { EXPECT_TRUE(Read().ok()); });
  }
  EXPECT_TRUE(Await([&] { return jobs_.calls == kContentCalls.calls_of_one; }));
  EXPECT_EQ(ReasonOf(Read().status()), "OVERLOADED");
  v1::GetRunRequest get;
  get.set_run(run_);
  v1::Run run;
  grpc::ClientContext context;
  EXPECT_TRUE(v1::RunService::NewStub(relay_.Connect(node_))->GetRun(&context, get, &run).ok());
  jobs_.holding = false;
  for (std::thread& read : reads) read.join();
  EXPECT_TRUE(Read().ok());
}

}  // namespace
}  // namespace muster
