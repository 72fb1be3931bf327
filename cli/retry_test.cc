// Tests `muster deployment retry` with a jobs service that may lie.
// testing/e2e/deployment_retry_test.go tests it with nodes.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/program_fixture.h"
#include "cli/rpc/sign_command.h"
#include "cli/supervisor/test_folder.h"
#include "muster/v1/deployments.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/context.h"
#include "services/common/identity/secret.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

const std::string& Id() {
  static const auto& id = *new std::string(32, 'd');
  return id;
}

// Answers a plan with this command, and accepts what is created.
class FakeJobsService final : public v1::DeploymentService::Service {
 public:
  FakeJobsService(const testing::TestFleet& fleet, v1::SignedCommand source)
      : source_(std::move(source)) {
    const auto jobs = fleet.Issue(ServiceIdentity{ServiceRole::kJobs, "jobs"});
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({jobs.key_pem, jobs.chain_pem});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  std::optional<v1::CreateDeploymentRequest> created() const {
    const MutexLock lock(mutex_);
    return created_;
  }

 private:
  grpc::Status PlanDeployment(grpc::ServerContext*, const v1::PlanDeploymentRequest*,
                              v1::DeploymentPlan* response) override {
    response->add_nodes("n1");
    response->mutable_time_limit()->set_seconds(60);
    *response->mutable_source() = source_;
    return grpc::Status::OK;
  }

  grpc::Status CreateDeployment(grpc::ServerContext*, const v1::CreateDeploymentRequest* request,
                                v1::Deployment* response) override {
    const MutexLock lock(mutex_);
    created_ = *request;
    response->set_deployment("new");
    return grpc::Status::OK;
  }

  const v1::SignedCommand source_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable Mutex mutex_;
  std::optional<v1::CreateDeploymentRequest> created_ ABSL_GUARDED_BY(mutex_);
};

class RetryTest : public ::testing::Test {
 protected:
  RetryTest() {
    context_.fleet = fleet_.name();
    context_.aggregator_targets = {absl::StrCat("127.0.0.1:", fleet_.port())};
    context_.fleet_ca_pem = fleet_.fleet_ca_pem();
    context_.certificate_chain_pem = fleet_.admin().chain_pem;
    context_.private_key_pem = Secret(fleet_.admin().key_pem);
  }

  // Returns the signed command of a deployment.
  v1::SignedCommand Source(const std::string& id) const {
    v1::Command command;
    command.set_action(std::string(kDeploymentAction));
    const std::string image = absl::StrCat("a@sha256:", std::string(64, 'a'));
    command.mutable_container()->set_image(image);
    v1::Command::Deployment& content = *command.mutable_container()->mutable_deployment();
    content.set_deployment(id);
    content.set_action("deploy");
    content.set_type_document(
        absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\n"
                     "contract: 1\nimage: ",
                     image, "\nparameters: {token: {sensitive: true}}\n"));
    content.set_parameters(R"({"token": "s3cret"})");
    ToProto(absl::Now(), command.mutable_not_before());
    ToProto(absl::Now() + absl::Minutes(5), command.mutable_not_after());
    command.mutable_time_limit()->set_seconds(60);
    return SignForNodes(context_, std::move(command), {"n1", "n2"}).value().command;
  }

  Outcome Retry(const FakeJobsService& jobs) {
    context_.jobs_targets = {jobs.target()};
    EXPECT_TRUE(WriteContext(folder_ / "context.json", context_).ok());
    return Muster({"deployment", "retry", Id(), "--context", folder_ / "context.json"});
  }

  const supervisor::TestFolder folder_;
  testing::TestFleet fleet_;
  OperatorContext context_;
};

TEST_F(RetryTest, SignedContentIsSignedAgainForTheNodesOfThePlan) {
  const FakeJobsService jobs(fleet_, Source(Id()));
  const Outcome outcome = Retry(jobs);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "new\n");
  EXPECT_THAT(outcome.err, HasSubstr("token = (sensitive)"));
  const auto created = jobs.created();
  ASSERT_TRUE(created.has_value());
  EXPECT_EQ(created->retry_of(), Id());
  v1::Command command;
  ASSERT_TRUE(command.ParseFromString(created->command().command()));
  EXPECT_EQ(command.targets().count(), 1);
  EXPECT_NE(command.container().deployment().deployment(), Id());
  EXPECT_EQ(command.container().deployment().parameters(), R"({"token": "s3cret"})");
}

TEST_F(RetryTest, CommandOfAnotherDeploymentIsNotSigned) {
  const FakeJobsService jobs(fleet_, Source(std::string(32, 'e')));
  const Outcome outcome = Retry(jobs);
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("another command than that of deployment " + Id()));
  EXPECT_FALSE(jobs.created().has_value());
}

TEST_F(RetryTest, ChangedCommandIsNotSigned) {
  v1::SignedCommand source = Source(Id());
  v1::Command command;
  ASSERT_TRUE(command.ParseFromString(source.command()));
  command.mutable_container()->mutable_deployment()->set_parameters("{}");
  source.set_command(command.SerializeAsString());
  const FakeJobsService jobs(fleet_, source);
  const Outcome outcome = Retry(jobs);
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("COMMAND_REFUSED"));
  EXPECT_FALSE(jobs.created().has_value());
}

}  // namespace
}  // namespace muster::cli
