// Requests of a node for secrets, through a relay with real mutual TLS.
#include "services/relay/proxy/secret_forward.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "muster/v1/runs.grpc.pb.h"
#include "muster/v1/secrets.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/status.h"
#include "services/relay/testing/forward_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using testing::Await;

// The jobs service as a relay sees it. Holds calls while `holding`.
class FakeSecrets final : public v1::SecretService::Service {
 public:
  grpc::Status FetchSecrets(grpc::ServerContext* context, const v1::FetchSecretsRequest* request,
                            v1::FetchSecretsResponse* response) override {
    ++calls;
    const auto uri = context->client_metadata().find(kForwardedIdentity);
    if (uri != context->client_metadata().end()) {
      response->set_sealed(std::string(uri->second.data(), uri->second.size()));
    }
    response->set_signature(request->job());
    Await([&] { return !holding || context->IsCancelled(); });
    return grpc::Status::OK;
  }

  std::atomic<int> calls = 0;
  std::atomic<bool> holding = false;
};

class SecretForwardTest : public testing::ForwardTestBase {
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

  absl::StatusOr<v1::FetchSecretsResponse> Fetch() {
    v1::FetchSecretsRequest request;
    request.set_job("a-job");
    v1::FetchSecretsResponse response;
    grpc::ClientContext context;
    const absl::Status status = FromGrpc(v1::SecretService::NewStub(relay_.Connect(node_))
                                             ->FetchSecrets(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  FakeSecrets jobs_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(SecretForwardTest, NodeFetchesInItsOwnName) {
  const auto response = Fetch();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->signature(), "a-job");
  EXPECT_EQ(response->sealed(), "spiffe://" + fleet_.name() + "/node/n1");
}

TEST_F(SecretForwardTest, UnreachableJobsServiceIsAReasonOfItsOwnThatCanBeRetried) {
  server_->Shutdown();
  const absl::Status status = Fetch().status();
  EXPECT_EQ(ReasonOf(status), "JOBS_UNREACHABLE") << status;
  EXPECT_TRUE(RetryAfterOf(status));
  relay_.upstream().ConnectJobs(nullptr);
  EXPECT_EQ(ReasonOf(Fetch().status()), "RELAY_CUT_OFF");
}

TEST_F(SecretForwardTest, NodeThatIsNotAttachedIsRefused) {
  relay_.upstream().Detach("n1");
  EXPECT_EQ(ReasonOf(Fetch().status()), "NOT_ATTACHED");
  EXPECT_EQ(jobs_.calls, 0);
}

TEST_F(SecretForwardTest, WaitingCallsAreLimitedAndDelayNoOtherCall) {
  jobs_.holding = true;
  std::vector<std::thread> calls;
  for (int i = 0; i < kSecretCalls.calls_of_one; ++i) {
    calls.emplace_back([this] { EXPECT_TRUE(Fetch().ok()); });
  }
  EXPECT_TRUE(Await([&] { return jobs_.calls == kSecretCalls.calls_of_one; }));
  EXPECT_EQ(ReasonOf(Fetch().status()), "OVERLOADED");
  v1::GetRunRequest get;
  get.set_run(run_);
  v1::Run run;
  grpc::ClientContext context;
  EXPECT_TRUE(v1::RunService::NewStub(relay_.Connect(node_))->GetRun(&context, get, &run).ok());
  jobs_.holding = false;
  for (std::thread& call : calls) call.join();
  EXPECT_TRUE(Fetch().ok());
}

}  // namespace
}  // namespace muster
