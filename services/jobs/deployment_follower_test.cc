#include "services/jobs/deployment_follower.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/unique_fd.h"
#include "services/common/rpc/channel.h"
#include "services/jobs/jobs_schema.h"
#include "services/jobs/testing/scripted_relay.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

constexpr char kDeployment[] = "d1";

class DeploymentFollowerTest : public ::testing::Test {
 protected:
  DeploymentFollowerTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
    store_ = std::make_unique<DeploymentStore>(*database_);
    v1::Deployment message;
    message.set_deployment(kDeployment);
    message.set_job("j1");
    message.set_state(v1::DEPLOYMENT_STATE_PENDING);
    message.set_problem("it waits for other deployments to end");
    EXPECT_TRUE(store_->Create(message, {}).ok());
  }

  std::shared_ptr<grpc::Channel> Connect() const { return ConnectTo(relay_.port()); }

  std::shared_ptr<grpc::Channel> ConnectTo(int port) const {
    const testing::TestIdentity identity =
        fleet_.Issue(ServiceIdentity{ServiceRole::kJobs, "jobs"});
    const ChannelIdentity channel = {fleet_.name(), fleet_.fleet_ca_pem(), identity.chain_pem,
                                     identity.key_pem, ""};
    return MakeChannel("127.0.0.1:" + std::to_string(port),
                       MakeChannelCredentials(channel, {ServiceRole::kRelay}), true);
  }

  std::string Problem() { return store_->Get(kDeployment)->problem(); }

  testing::TestFleet fleet_;
  testing::ScriptedRelay relay_{fleet_};
  const std::string folder_ = ::testing::TempDir() + "/follower";
  std::unique_ptr<sqlite::LocalDatabase> database_;
  std::unique_ptr<DeploymentStore> store_;
  FakeClock clock_;
  Executor executor_{{"deployments", 1, 100}};
};

TEST_F(DeploymentFollowerTest, RelayThatDoesNotAnswerIsTheProblemAfterSeconds) {
  relay_.Hang(true);
  const auto channel = Connect();
  DeploymentFollower follower({*store_, [&] { return channel; },
                               [](const std::string&) { return false; }, clock_, clock_, executor_},
                              kDeployment, [] {});
  ASSERT_TRUE(testing::Await([&] { return relay_.submissions() == 1; }));
  EXPECT_EQ(Problem(), "");  // it does not wait for others any more
  clock_.Advance(absl::Seconds(2));
  executor_.AwaitIdle();
  EXPECT_EQ(Problem(), "");
  clock_.Advance(absl::Seconds(1));
  executor_.AwaitIdle();
  EXPECT_EQ(Problem(), "the root relay has not answered yet");
  EXPECT_EQ(store_->Get(kDeployment)->state(), v1::DEPLOYMENT_STATE_PENDING);
  relay_.Hang(false);
}

// As that of a suspended relay: the kernel accepts connections.
TEST_F(DeploymentFollowerTest, RelayThatAnswersNoConnectionIsTheProblemAfterSeconds) {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener.get(), 10), 0);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const auto channel = ConnectTo(ntohs(address.sin_port));
  DeploymentFollower follower({*store_, [&] { return channel; },
                               [](const std::string&) { return false; }, clock_, clock_, executor_},
                              kDeployment, [] {});
  ASSERT_TRUE(testing::Await([&] { return store_->GetOpen(kDeployment)->attempted; }));
  executor_.AwaitIdle();
  clock_.Advance(absl::Seconds(3));
  executor_.AwaitIdle();
  EXPECT_EQ(Problem(), "the root relay does not answer connections");
}

TEST_F(DeploymentFollowerTest, AttemptIsStoredBeforeTheSubmission) {
  EXPECT_FALSE(store_->GetOpen(kDeployment)->attempted);
  relay_.Hang(true);
  const auto channel = Connect();
  DeploymentFollower follower({*store_, [&] { return channel; },
                               [](const std::string&) { return false; }, clock_, clock_, executor_},
                              kDeployment, [] {});
  ASSERT_TRUE(testing::Await([&] { return relay_.submissions() == 1; }));
  EXPECT_TRUE(store_->GetOpen(kDeployment)->attempted);
  relay_.Hang(false);
}

}  // namespace
}  // namespace muster
