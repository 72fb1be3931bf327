#include "services/jobs/late_outcomes.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/deployment_runner.h"
#include "services/jobs/jobs_schema.h"
#include "services/jobs/testing/scripted_relay.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

class LateOutcomesTest : public ::testing::Test {
 protected:
  LateOutcomesTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
    store_ = std::make_unique<DeploymentStore>(*database_);
    unsettled_ = std::make_unique<UnsettledDeployments>(*database_);
    const testing::TestIdentity identity =
        fleet_.Issue(ServiceIdentity{ServiceRole::kJobs, "jobs"});
    const ChannelIdentity channel = {fleet_.name(), fleet_.fleet_ca_pem(), identity.chain_pem,
                                     identity.key_pem, ""};
    channel_ = MakeChannel("127.0.0.1:" + std::to_string(relay_.port()),
                           MakeChannelCredentials(channel, {ServiceRole::kRelay}), true);
    runner_ = std::make_unique<DeploymentRunner>(
        DeploymentFollower::Parts{*store_, [this] { return channel_; },
                                  [](const std::string&) { return false; }, clock_, clock_,
                                  executor_},
        10);
    late_ =
        std::make_unique<LateOutcomes>(LateOutcomes::Parts{*unsettled_, [this] { return channel_; },
                                                           [this](DeploymentOfCreator one) {
                                                             reopened_.push_back(one.deployment);
                                                             runner_->Add(std::move(one));
                                                           },
                                                           clock_, executor_});
  }
  ~LateOutcomesTest() override {
    late_.reset();
    runner_->Stop();
  }

  static v1::JobRecord Final(const std::string& node, v1::JobOutcome outcome, int64_t sequence) {
    v1::JobRecord record;
    record.set_node(node);
    record.set_sequence(sequence);
    record.mutable_final()->set_outcome(outcome);
    return record;
  }

  // Runs a deployment on two nodes; the relay gives up n2.
  void LoseN2(const std::string& id) {
    v1::Deployment message;
    message.set_deployment(id);
    message.set_job("j" + id);
    message.set_state(v1::DEPLOYMENT_STATE_PENDING);
    message.set_created_by("spiffe://fleet.test/operator/o");
    v1::CreateDeploymentRequest request;
    v1::Command command;
    command.set_job(message.job());
    request.mutable_command()->set_command(command.SerializeAsString());
    request.add_nodes("n1");
    request.add_nodes("n2");
    ASSERT_TRUE(store_->Create(message, request).ok());
    runner_->Add({id, message.created_by(), false});
    ASSERT_TRUE(relay_.AwaitJob(message.job()));
    relay_.AddRecord(message.job(), Final("n1", v1::JOB_OUTCOME_EXITED, 1));
    relay_.AddRecord(message.job(), Final("n2", v1::JOB_OUTCOME_TIMED_OUT, 0));
    relay_.End(message.job(), v1::JOB_STATE_ENDED);
    Await(id, v1::DEPLOYMENT_STATE_FAILED);
  }

  void Await(const std::string& id, v1::DeploymentState state) {
    EXPECT_TRUE(testing::Await([&] {
      clock_.Advance(absl::Milliseconds(100));  // the stream begins at a time of this clock
      return store_->Get(id)->state() == state && absl::IsNotFound(store_->GetOpen(id).status());
    })) << store_->Get(id)->ShortDebugString();
  }

  v1::DeploymentNode NodeOf(const std::string& id, const std::string& name) {
    v1::Deployment message = *store_->Get(id);
    EXPECT_TRUE(store_->AddNodes("", 10, 1 << 20, &message).ok());
    for (const v1::DeploymentNode& node : message.nodes()) {
      if (node.node() == name) return node;
    }
    return {};
  }

  // Begins the next look at the root relay.
  void Look() {
    executor_.AwaitIdle();
    clock_.Advance(absl::Seconds(31));
  }
  int64_t IndexedAsUnsettled() {
    int64_t count = 0;
    EXPECT_TRUE(database_
                    ->Read([&](sqlite::Connection& db) {
                      sqlite::Rows rows =
                          db.Query("SELECT count(*) FROM deployments WHERE unsettled != 0");
                      if (rows.Next()) count = rows.Int();
                      return absl::OkStatus();
                    })
                    .ok());
    return count;
  }
  size_t Unsettled() { return unsettled_->List(0, 100)->size(); }

  testing::TestFleet fleet_;
  testing::ScriptedRelay relay_{fleet_};
  const std::string folder_ = ::testing::TempDir() + "/late";
  std::unique_ptr<sqlite::LocalDatabase> database_;
  std::unique_ptr<DeploymentStore> store_;
  std::unique_ptr<UnsettledDeployments> unsettled_;
  FakeClock clock_{absl::Now()};
  Executor executor_{{"deployments", 1, 100}};
  std::shared_ptr<grpc::Channel> channel_;
  std::vector<std::string> reopened_;
  std::unique_ptr<DeploymentRunner> runner_;
  std::unique_ptr<LateOutcomes> late_;
};

TEST_F(LateOutcomesTest, OutcomeOfTheNodeReplacesThatOfTheRelayAndTheEarlierOneStays) {
  LoseN2("a");
  EXPECT_EQ(Unsettled(), 1u);
  late_->Start();
  relay_.AddLateRecord("ja", Final("n2", v1::JOB_OUTCOME_EXITED, 3));
  Look();
  Await("a", v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_EQ(store_->Get("a")->succeeded(), 2);
  EXPECT_EQ(store_->Get("a")->problem(), "");
  EXPECT_TRUE(store_->Get("a")->has_late_time());
  const v1::DeploymentNode n2 = NodeOf("a", "n2");
  EXPECT_EQ(n2.final().outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(n2.earlier().outcome(), v1::JOB_OUTCOME_TIMED_OUT);
  EXPECT_FALSE(NodeOf("a", "n1").has_earlier());
  EXPECT_EQ(Unsettled(), 0u);
}

TEST_F(LateOutcomesTest, DeploymentWithoutLateRecordsIsNotOpenedAgain) {
  LoseN2("a");
  LoseN2("b");
  late_->Start();
  relay_.AddLateRecord("jb", Final("n2", v1::JOB_OUTCOME_FAILED, 3));
  Look();
  EXPECT_TRUE(testing::Await([&] {
    clock_.Advance(absl::Milliseconds(100));
    return store_->Get("b")->has_late_time();
  }));
  Await("b", v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_EQ(Unsettled(), 1u);
  Look();
  executor_.AwaitIdle();
  EXPECT_EQ(reopened_, std::vector<std::string>{"b"});
}

TEST_F(LateOutcomesTest, JobThatTheRelayHasRemovedIsNotAskedForAgain) {
  LoseN2("a");
  late_->Start();
  relay_.Forget("ja");
  Look();
  EXPECT_TRUE(testing::Await([&] { return Unsettled() == 0; }));
  EXPECT_EQ(store_->Get("a")->state(), v1::DEPLOYMENT_STATE_FAILED);
}

TEST_F(LateOutcomesTest, ReopenedDeploymentIsAnEndedOneForOtherCalls) {
  LoseN2("a");
  const v1::Deployment before = *store_->Get("a");
  ASSERT_TRUE(unsettled_->Reopen("a").ok());
  EXPECT_EQ(store_->ListOpen()->size(), 1u) << "a restart continues";
  EXPECT_TRUE(store_->RequestCancel("a", {"spiffe://fleet.test/user/o"}, clock_.Now()).ok());
  EXPECT_TRUE(store_->SetProblem("a", "it waits").ok());
  EXPECT_TRUE(store_->Fail("a", "its job is not known", false, clock_.Now()).ok());
  EXPECT_EQ(store_->Get("a")->SerializeAsString(), before.SerializeAsString());
  EXPECT_TRUE(store_->ListOpen()->empty());
  EXPECT_EQ(Unsettled(), 0u);
}

TEST_F(LateOutcomesTest, OutcomeArrivesAfterAJumpOfTheClock) {
  LoseN2("a");
  clock_.Advance(absl::Hours(24 * 365));
  late_->Start();
  executor_.AwaitIdle();
  EXPECT_EQ(Unsettled(), 1u);
  relay_.AddLateRecord("ja", Final("n2", v1::JOB_OUTCOME_EXITED, 3));
  Look();
  Await("a", v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_EQ(IndexedAsUnsettled(), 0);
}

}  // namespace
}  // namespace muster
