// Tests how the aggregator follows verdicts: a status service sends them over mutual TLS, and the
// test reads the runs through the API.
#include <grpcpp/client_context.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/aggregator/testing/test_verdicts.h"
#include "services/common/base/error.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::Await;
using testing::Lost;
using testing::SmallResult;
using testing::StartGraceExpired;
using testing::TestFleet;
using testing::TestIdentity;
using testing::TestVerdicts;

class VerdictTest : public ::testing::Test {
 protected:
  VerdictTest() { Follow({status_.emplace(fleet_, StatusIdentity()).target()}); }

  TestIdentity StatusIdentity() const {
    return fleet_.Issue(ServiceIdentity{ServiceRole::kStatus, "main"});
  }

  // Restarts the aggregator as a follower of `targets`.
  void Follow(std::vector<std::string> targets) {
    fleet_.Stop();
    fleet_.config.status_targets = std::move(targets);
    fleet_.Start();
  }

  v1::Run CreateRun(v1::CreateRunRequest request) {
    request.add_plugins("hostfacts");
    v1::Run run;
    grpc::ClientContext context;
    const grpc::Status status =
        v1::RunService::NewStub(fleet_.Connect(fleet_.admin()))->CreateRun(&context, request, &run);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return run;
  }

  v1::Run GetRun(const std::string& run) {
    v1::GetRunRequest request;
    request.set_run(run);
    v1::Run found;
    grpc::ClientContext context;
    EXPECT_TRUE(v1::RunService::NewStub(fleet_.Connect(fleet_.admin()))
                    ->GetRun(&context, request, &found)
                    .ok());
    return found;
  }

  v1::Result GetResult(const std::string& run, const std::string& node) {
    v1::GetResultRequest request;
    request.mutable_key()->set_run(run);
    request.mutable_key()->set_plugin("hostfacts");
    request.mutable_key()->set_node(node);
    v1::Result result;
    grpc::ClientContext context;
    EXPECT_TRUE(v1::ResultService::NewStub(fleet_.Connect(fleet_.admin()))
                    ->GetResult(&context, request, &result)
                    .ok());
    return result;
  }

  bool TimesOut(const std::string& run, const std::string& node) {
    return Await([&] { return GetResult(run, node).outcome() == v1::OUTCOME_TIMED_OUT; });
  }

  absl::StatusOr<v1::Result> Submit(const TestIdentity& identity, const std::string& run,
                                    const std::string& node) {
    v1::Result result;
    grpc::ClientContext context;
    const grpc::Status status =
        v1::ResultService::NewStub(fleet_.Connect(identity))
            ->SubmitResult(&context, SmallResult(run, "hostfacts", node, "{}"), &result);
    if (!status.ok()) return FromGrpc(status);
    return result;
  }

  TestFleet fleet_;
  std::optional<TestVerdicts> status_;
};

TEST_F(VerdictTest, LostPairIsTimedOutUntilItsResultArrives) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2", "n3"}).id();
  const TestIdentity node = fleet_.Credential(run, "hostfacts", "n1");
  status_->Send(Lost(run, "hostfacts", "n1"));
  ASSERT_TRUE(TimesOut(run, "n1"));
  EXPECT_EQ(GetResult(run, "n1").error(),
            "lost: CRASHED: the connection was closed without a goodbye; silent since "
            "2027-01-15 08:00:00 UTC");
  EXPECT_EQ(GetRun(run).counts().timed_out(), 1);
  EXPECT_EQ(status_->caller(), "spiffe://" + fleet_.name() + "/service/aggregator/main");

  const auto result = Submit(node, run, "n1");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome(), v1::OUTCOME_GENUINE);
  EXPECT_EQ(result->generation(), 2);
  // A repeated verdict has no effect; the effect of a later one shows that it was received.
  status_->Send(Lost(run, "hostfacts", "n1"));
  status_->Send(Lost(run, "hostfacts", "n2"));
  ASSERT_TRUE(TimesOut(run, "n2"));
  EXPECT_EQ(GetResult(run, "n1").outcome(), v1::OUTCOME_GENUINE);
  EXPECT_EQ(GetRun(run).state(), v1::RUN_STATE_RUNNING);
}

TEST_F(VerdictTest, RunIsSealedBeforeItsDeadlineAfterItsLastPairIsLost) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  status_->Send(Lost(run, "hostfacts", "n1"));
  const v1::Run ended = fleet_.WaitForEnd(run);
  EXPECT_EQ(ended.state(), v1::RUN_STATE_COMPLETE) << ended.state_reason();
  EXPECT_EQ(ended.counts().timed_out(), 1);
}

TEST_F(VerdictTest, LateResultOfTheLastLostSenderSealsTheRun) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}, 3600, 3600).id();
  const TestIdentity node = fleet_.Credential(run, "hostfacts", "n1");
  status_->Send(Lost(run, "hostfacts", "n1"));
  ASSERT_TRUE(TimesOut(run, "n1"));
  EXPECT_EQ(GetRun(run).state(), v1::RUN_STATE_POST_PROCESSING);
  ASSERT_TRUE(Submit(node, run, "n1").ok());
  const v1::Run ended = fleet_.WaitForEnd(run);
  EXPECT_EQ(ended.state(), v1::RUN_STATE_COMPLETE) << ended.state_reason();
  EXPECT_EQ(ended.counts().genuine(), 1);
}

TEST_F(VerdictTest, RunWithoutAgentsFailsWithTheFaultsOfItsNodes) {
  const std::string delivers = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"}).id();
  ASSERT_TRUE(Submit(fleet_.Credential(delivers, "hostfacts", "n1"), delivers, "n1").ok());
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"}).id();
  const TestIdentity late = fleet_.Credential(run, "hostfacts", "n1");
  status_->Send(StartGraceExpired(delivers, "n1: no heartbeat received"));
  status_->Send(StartGraceExpired(run, "n1: CONNECTION: refused; n2: no heartbeat received"));
  const v1::Run ended = fleet_.WaitForEnd(run);
  EXPECT_EQ(ended.state(), v1::RUN_STATE_FAILED);
  EXPECT_EQ(ended.state_reason(),
            "no agent reported within the start grace: n1: CONNECTION: refused; n2: no heartbeat "
            "received");
  EXPECT_EQ(GetRun(delivers).state(), v1::RUN_STATE_RUNNING);
  EXPECT_EQ(ReasonOf(Submit(late, run, "n1").status()), "RUN_CANCELLED");
}

TEST_F(VerdictTest, FailFastRunFailsWithTheFirstLostPair) {
  v1::CreateRunRequest request;
  request.add_nodes("n1");
  request.add_nodes("n2");
  request.set_fail_fast(true);
  const std::string run = CreateRun(request).id();
  status_->Send(Lost(run, "hostfacts", "n2", "NETWORK_LOST: no acknowledgement"));
  const v1::Run ended = fleet_.WaitForEnd(run);
  EXPECT_EQ(ended.state(), v1::RUN_STATE_FAILED);
  EXPECT_TRUE(absl::StartsWith(ended.state_reason(),
                               "hostfacts on n2: lost: NETWORK_LOST: no acknowledgement"))
      << ended.state_reason();
  EXPECT_EQ(ended.counts().pending(), 1);
}

TEST_F(VerdictTest, RepeatedVerdictAfterARestartHasNoEffect) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2", "n3"}).id();
  const TestIdentity node = fleet_.Credential(run, "hostfacts", "n1");
  status_->Send(Lost(run, "hostfacts", "n1"));
  status_->Send(Lost("ffffffffffffffff", "hostfacts", "n1"));
  status_->Send(Lost(run, "hostfacts", "unplanned"));
  status_->Send(StartGraceExpired("ffffffffffffffff", ""));
  status_->Send(Lost(run, "hostfacts", "n2"));
  ASSERT_TRUE(TimesOut(run, "n2"));
  ASSERT_TRUE(Submit(node, run, "n1").ok());
  fleet_.Stop();
  fleet_.Start();
  status_->Send(StartGraceExpired(run, "n3: no heartbeat received"));
  const std::string barrier = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"}).id();
  status_->Send(Lost(barrier, "hostfacts", "n1"));
  ASSERT_TRUE(TimesOut(barrier, "n1"));
  EXPECT_GE(status_->calls(), 2);
  EXPECT_EQ(GetResult(run, "n1").outcome(), v1::OUTCOME_GENUINE);
  EXPECT_EQ(GetResult(run, "n2").generation(), 1);
  EXPECT_EQ(GetRun(run).state(), v1::RUN_STATE_RUNNING);
}

TEST_F(VerdictTest, AggregatorWorksWithoutTheStatusService) {
  const int port = status_->port();
  status_.reset();
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2", "n3"}).id();
  ASSERT_TRUE(Submit(fleet_.Credential(run, "hostfacts", "n1"), run, "n1").ok());
  EXPECT_EQ(GetRun(run).counts().timed_out(), 0);
  status_.emplace(fleet_, StatusIdentity(), port);
  status_->Send(Lost(run, "hostfacts", "n2"));
  EXPECT_TRUE(TimesOut(run, "n2"));
}

TEST_F(VerdictTest, VerdictsOfOtherRolesAreIgnored) {
  TestVerdicts impostor(fleet_, fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "main"}));
  Follow({impostor.target(), status_->target()});
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2", "n3"}).id();
  impostor.Send(Lost(run, "hostfacts", "n1"));
  status_->Send(Lost(run, "hostfacts", "n2"));
  ASSERT_TRUE(TimesOut(run, "n2"));
  EXPECT_EQ(impostor.calls(), 0);
  EXPECT_EQ(GetResult(run, "n1").outcome(), v1::OUTCOME_PENDING);
}

}  // namespace
}  // namespace muster
