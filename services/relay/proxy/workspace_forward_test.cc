// Calls of a node that saves a workspace, through a relay with real mutual TLS.
#include "services/relay/proxy/workspace_forward.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "muster/v1/runs.grpc.pb.h"
#include "muster/v1/workspaces.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/status.h"
#include "services/common/templates/workspaces.h"
#include "services/relay/testing/forward_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using testing::Await;

// The jobs service as a relay sees it. Holds calls while `holding`.
class FakeWorkspaces final : public v1::WorkspaceService::Service {
 public:
  grpc::Status SaveWorkspace(grpc::ServerContext* context, const v1::SaveWorkspaceRequest* request,
                             v1::SaveWorkspaceResponse* response) override {
    ++calls;
    const auto uri = context->client_metadata().find(kForwardedIdentity);
    if (!holding && uri != context->client_metadata().end()) {
      caller = std::string(uri->second.data(), uri->second.size());
    }
    response->set_offset(static_cast<int64_t>(request->data().size()));
    Await([&] { return !holding || context->IsCancelled(); });
    return grpc::Status::OK;
  }

  std::string caller;  // of the last call that was not held
  std::atomic<int> calls = 0;
  std::atomic<bool> holding = false;
};

class WorkspaceForwardTest : public testing::ForwardTestBase {
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

  absl::StatusOr<v1::SaveWorkspaceResponse> Save() {
    v1::SaveWorkspaceRequest request;
    request.set_data(std::string(kWorkspacePart, 'x'));
    v1::SaveWorkspaceResponse response;
    grpc::ClientContext context;
    const absl::Status status = FromGrpc(v1::WorkspaceService::NewStub(relay_.Connect(node_))
                                             ->SaveWorkspace(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  FakeWorkspaces jobs_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(WorkspaceForwardTest, NodeSavesInItsOwnName) {
  const auto response = Save();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->offset(), static_cast<int64_t>(kWorkspacePart));
  EXPECT_EQ(jobs_.caller, "spiffe://" + fleet_.name() + "/node/n1");
}

TEST_F(WorkspaceForwardTest, UnreachableJobsServiceIsAReasonOfItsOwnThatCanBeRetried) {
  server_->Shutdown();
  const absl::Status status = Save().status();
  EXPECT_EQ(ReasonOf(status), "JOBS_UNREACHABLE") << status;
  EXPECT_TRUE(RetryAfterOf(status));
  relay_.upstream().ConnectJobs(nullptr);
  EXPECT_EQ(ReasonOf(Save().status()), "RELAY_CUT_OFF");
}

TEST_F(WorkspaceForwardTest, NodeThatIsNotAttachedIsRefused) {
  relay_.upstream().Detach("n1");
  EXPECT_EQ(ReasonOf(Save().status()), "NOT_ATTACHED");
  EXPECT_EQ(jobs_.calls, 0);
}

TEST_F(WorkspaceForwardTest, WaitingCallsAreLimitedAndDelayNoOtherCall) {
  jobs_.holding = true;
  std::vector<std::thread> calls;
  for (int i = 0; i < kWorkspaceCalls.calls_of_one; ++i) {
    calls.emplace_back([this] { EXPECT_TRUE(Save().ok()); });
  }
  EXPECT_TRUE(Await([&] { return jobs_.calls == kWorkspaceCalls.calls_of_one; }));
  EXPECT_EQ(ReasonOf(Save().status()), "OVERLOADED");
  v1::GetRunRequest get;
  get.set_run(run_);
  v1::Run run;
  grpc::ClientContext context;
  EXPECT_TRUE(v1::RunService::NewStub(relay_.Connect(node_))->GetRun(&context, get, &run).ok());
  jobs_.holding = false;
  for (std::thread& call : calls) call.join();
  EXPECT_TRUE(Save().ok());
}

}  // namespace
}  // namespace muster
