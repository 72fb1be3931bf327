// Cancelled deployments, and those of revoked creators, with a scripted root relay.
#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/identities.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/jobs.h"
#include "services/common/identity/key.h"
#include "services/common/identity/signing_request.h"
#include "services/common/rpc/status.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_call.h"

namespace muster {
namespace {

using testing::TestIdentity;

const grpc::Status kUnavailable(grpc::StatusCode::UNAVAILABLE, "try again");

class DeploymentCancelTest : public testing::JobsFixture {
 protected:
  DeploymentCancelTest() {
    v1::AddOperatorRequest request;
    request.set_name("bob");
    const PrivateKey key = PrivateKey::Generate().value();
    request.set_csr_pem(CreateSigningRequest(key).value());
    const auto added = testing::CallUnary<v1::IdentityService>(
        fleet_.Connect(fleet_.admin()), &v1::IdentityService::Stub::AddOperator, request);
    EXPECT_TRUE(added.ok()) << added.status();
    bob_ = {added->certificate_chain_pem(), std::string(key.ToPkcs8Pem()->view())};
  }

  void RevokeBob() {
    v1::RevokeOperatorRequest request;
    request.set_name("bob");
    const auto revoked = testing::CallUnary<v1::IdentityService>(
        fleet_.Connect(fleet_.admin()), &v1::IdentityService::Stub::RevokeOperator, request);
    EXPECT_TRUE(revoked.ok()) << revoked.status();
  }

  // Returns the submission of the only cancellation at the relay.
  v1::SubmitJobRequest CancelledSubmission() const {
    const auto cancels = relay_.cancels();
    EXPECT_EQ(cancels.size(), 1u);
    return cancels.empty() ? v1::SubmitJobRequest() : cancels[0].submission();
  }

  TestIdentity bob_;
};

TEST_F(DeploymentCancelTest, NeverSubmittedEndsAtOnceAndIsNeverSubmitted) {
  const auto created = CreateUntilOneWaits(bob_);
  const std::string waiting = created.back().deployment();
  const auto cancelled = Cancel(waiting);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::DEPLOYMENT_STATE_CANCELLED);
  EXPECT_TRUE(cancelled->has_end_time());
  EXPECT_EQ(cancelled->problem(), "");
  EXPECT_TRUE(absl::EndsWith(cancelled->cancel_requested_by(), "/user/tester"))
      << cancelled->cancel_requested_by();
  // The next one gets the place that becomes free.
  const auto next = CreateAs(bob_, {"n1"});
  relay_.End(created[0].job(), v1::JOB_STATE_ENDED);
  ASSERT_TRUE(relay_.AwaitJob(next->job()));
  EXPECT_EQ(relay_.submissions(), static_cast<int>(created.size()));
  EXPECT_TRUE(relay_.cancels().empty());
}

// The relay may have got the submission: it gets the cancellation, also after a restart, and is
// never asked to run it.
TEST_F(DeploymentCancelTest, PerhapsSubmittedIsCancelledAtTheRelayWithItsSubmission) {
  const v1::Deployment created = CreatePending(fleet_.admin());
  const auto cancelled = Cancel(created.deployment());
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::DEPLOYMENT_STATE_PENDING);
  EXPECT_NE(cancelled->cancel_requested_by(), "");
  StopService();
  StartService();
  relay_.Start();
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_CANCELLED);
  EXPECT_EQ(relay_.submissions(), 0);
  v1::Command command;
  ASSERT_TRUE(command.ParseFromString(CancelledSubmission().command().command()));
  EXPECT_EQ(command.job(), created.job());
}

TEST_F(DeploymentCancelTest, PerhapsSubmittedWhoseCommandIsRefusedEndsCancelled) {
  for (const absl::Status& refusal :
       {errors::CommandExpired(absl::Now()), errors::CommandRefused("its signer was revoked"),
        errors::JobExists("j"), errors::NotADeployment("j")}) {
    const v1::Deployment created = CreatePending(fleet_.admin());
    ASSERT_TRUE(Cancel(created.deployment()).ok());
    relay_.AnswerCancelsWith({kUnavailable, ToGrpc(refusal)});
    relay_.Start();
    AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_CANCELLED);
  }
  EXPECT_EQ(relay_.submissions(), 0);
}

TEST_F(DeploymentCancelTest, RunningIsCancelledOnceTheRelayAnswers) {
  const auto created = Create(Request({"n1"}));
  AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_RUNNING);
  relay_.AnswerCancelsWith({kUnavailable, kUnavailable});
  for (int i = 0; i < 2; ++i) {
    const auto cancelled = Cancel(created->deployment());
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
    EXPECT_NE(cancelled->cancel_requested_by(), "");
  }
  AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_CANCELLED);
  const auto cancels = relay_.cancels();
  EXPECT_GE(cancels.size(), 3u);
  EXPECT_EQ(cancels[0].job(), created->job());
  EXPECT_FALSE(cancels[0].has_submission());
  EXPECT_TRUE(absl::EndsWith(cancels[0].actor(), "/user/tester")) << cancels[0].actor();
}

TEST_F(DeploymentCancelTest, RunningIsCancelledAfterARestart) {
  const auto created = Create(Request({"n1"}));
  AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_RUNNING);
  relay_.Stop();
  EXPECT_EQ(Cancel(created->deployment())->state(), v1::DEPLOYMENT_STATE_RUNNING);
  StopService();
  StartService();
  relay_.Start();
  AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_CANCELLED);
}

TEST_F(DeploymentCancelTest, EndedDoesNotChangeAndUnknownIsNotFound) {
  relay_.AnswerWith({ToGrpc(errors::InvalidJobCommand("it is bad"))});
  const auto created = Create(Request({"n1"}));
  AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_FAILED);
  const auto after = Cancel(created->deployment());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->state(), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_EQ(after->cancel_requested_by(), "");
  EXPECT_EQ(ReasonOf(Cancel("00112233445566778899aabbccddeeff").status()), "DEPLOYMENT_NOT_FOUND");
}

TEST_F(DeploymentCancelTest, NeverSubmittedOneOfARevokedCreatorFails) {
  const auto created = CreateUntilOneWaits(bob_);
  RevokeBob();
  const v1::Deployment ended = AwaitState(created.back().deployment(), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_TRUE(absl::StrContains(ended.problem(), "/user/bob, was revoked")) << ended.problem();
  EXPECT_EQ(relay_.submissions(), static_cast<int>(created.size()) - 1);
  // Those that run continue.
  EXPECT_EQ(Get(created[0].deployment())->state(), v1::DEPLOYMENT_STATE_RUNNING);
}

TEST_F(DeploymentCancelTest, PerhapsSubmittedOneOfARevokedCreatorFailsIfTheRelayDoesNotHaveIt) {
  const v1::Deployment created = CreatePending(bob_);
  RevokeBob();
  ASSERT_TRUE(testing::Await([&] {
    return absl::StrContains(Get(created.deployment())->problem(), "/user/bob, was revoked");
  }));
  EXPECT_EQ(Get(created.deployment())->state(), v1::DEPLOYMENT_STATE_PENDING);
  relay_.Start();
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_EQ(relay_.submissions(), 0);
}

// The answers are lost.
TEST_F(DeploymentCancelTest, SubmittedOneOfARevokedCreatorIsFollowed) {
  relay_.KeepRefused();
  relay_.AnswerWith(std::vector<grpc::Status>(10'000, kUnavailable));
  const auto created = CreateAs(bob_, {"n1"});
  ASSERT_TRUE(created.ok()) << created.status();
  ASSERT_TRUE(relay_.AwaitJob(created->job()));
  RevokeBob();
  AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_RUNNING);
  relay_.End(created->job(), v1::JOB_STATE_CANCELLED);
  AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_CANCELLED);
}

}  // namespace
}  // namespace muster
