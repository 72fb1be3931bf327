// The calls of the jobs service at the root relay, with a real aggregator.
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/audit.grpc.pb.h"
#include "muster/v1/identities.grpc.pb.h"
#include "muster/v1/jobs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/random_id.h"
#include "services/common/identity/signed_command.h"
#include "services/common/identity/signing_key.h"
#include "services/common/identity/target_set.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/relay_server.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::CallUnary;
using testing::TestIdentity;

class DeploymentJobsTest : public ::testing::Test {
 protected:
  DeploymentJobsTest() {
    RelayConfig config;
    const std::filesystem::path home =
        std::filesystem::path(fleet_.config.state_folder).parent_path();
    config.state_folder = home / "relay";
    config.listen = {"127.0.0.1", 0};
    config.aggregator_targets = {{"127.0.0.1", static_cast<uint16_t>(fleet_.port())}};
    config.status_targets = {{"127.0.0.1", 1}};  // nothing listens there
    config.jobs_targets = {{"127.0.0.1", 1}};
    config.log.level = "error";
    config.drain = absl::Milliseconds(100);
    auto started = RelayServer::Start(config, [](const absl::Status&) {});
    EXPECT_TRUE(started.ok()) << started.status();
    relay_ = *std::move(started);
    // The relay accepts commands once it has the authority of the fleet.
    const v1::SubmitJobRequest first = Signed(CommandOf(kExecAction));
    EXPECT_TRUE(testing::Await([&] { return SubmitAs(fleet_.admin(), first).ok(); }));
  }

  std::shared_ptr<grpc::Channel> Connect(const TestIdentity& identity) const {
    const ChannelIdentity channel = {fleet_.name(), fleet_.fleet_ca_pem(), identity.chain_pem,
                                     identity.key_pem, ""};
    const int port = dynamic_cast<const RelayServer&>(*relay_).port();
    return MakeChannel(absl::StrCat("127.0.0.1:", port),
                       MakeChannelCredentials(channel, {ServiceRole::kRelay}), true);
  }

  absl::StatusOr<v1::Job> SubmitAs(const TestIdentity& caller,
                                   const v1::SubmitJobRequest& request) const {
    return CallUnary<v1::JobService>(Connect(caller), &v1::JobService::Stub::SubmitJob, request);
  }
  absl::StatusOr<v1::Job> CancelAs(const TestIdentity& caller,
                                   const v1::CancelJobRequest& request) const {
    return CallUnary<v1::JobService>(Connect(caller), &v1::JobService::Stub::CancelJob, request);
  }
  absl::StatusOr<v1::Job> Get(const std::string& job) const {
    v1::GetJobRequest request;
    request.set_job(job);
    return CallUnary<v1::JobService>(Connect(fleet_.admin()), &v1::JobService::Stub::GetJob,
                                     request);
  }

  // Returns a command with this action for the node n1.
  v1::Command CommandOf(std::string_view action) const {
    v1::Command command;
    command.set_fleet(fleet_.name());
    command.set_job(RandomHex(16));
    command.set_action(std::string(action));
    if (action == kExecAction || action == kRudderAction) {
      command.add_argv("/bin/true");
    } else {
      command.mutable_container()->set_image(absl::StrCat("sha256:", std::string(64, 'a')));
    }
    if (action == kDeploymentAction) {
      v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
      deployment.set_deployment(RandomHex(16));
      deployment.set_action("deploy");
      deployment.set_type_document("{}");
    }
    if (action == kBuildAction) {
      command.mutable_container()->mutable_build()->set_build(RandomHex(16));
    }
    ToProto(absl::Now() - absl::Minutes(1), command.mutable_not_before());
    ToProto(absl::Now() + absl::Minutes(5), command.mutable_not_after());
    command.mutable_time_limit()->set_seconds(60);
    command.set_nonce(absl::HexStringToBytes(RandomHex(16)));
    const TargetSet targets({"n1"});
    command.mutable_targets()->set_nodes_sha256(targets.root());
    command.mutable_targets()->set_count(1);
    return command;
  }

  // Returns the submission of the command, signed by the operator.
  v1::SubmitJobRequest Signed(const v1::Command& command) const {
    const SigningKey key = SigningKey::Generate().value();
    v1::IssueCommandCertificateRequest issue;
    issue.set_public_key_pem(key.public_key().ToPem().value());
    const auto certificate = CallUnary<v1::IdentityService>(
        fleet_.Connect(fleet_.admin()), &v1::IdentityService::Stub::IssueCommandCertificate, issue);
    EXPECT_TRUE(certificate.ok()) << certificate.status();
    v1::SubmitJobRequest request;
    *request.mutable_command() =
        SignCommand(command, key, certificate->certificate_chain_pem()).value();
    request.add_nodes("n1");
    return request;
  }

  std::string Operator() const { return absl::StrCat("spiffe://", fleet_.name(), "/user/bob"); }

  v1::CancelJobRequest CancelRequest(const std::string& job) const {
    v1::CancelJobRequest request;
    request.set_job(job);
    request.set_actor(Operator());
    return request;
  }

  testing::TestFleet fleet_;
  std::unique_ptr<RunningService> relay_;
  const TestIdentity jobs_service_ = fleet_.Issue(ServiceIdentity{ServiceRole::kJobs, "jobs"});
};

TEST_F(DeploymentJobsTest, JobsServiceSubmitsDeploymentsAlone) {
  for (const std::string_view action : {kExecAction, kRudderAction, kContainerAction}) {
    SCOPED_TRACE(action);
    const v1::Command command = CommandOf(action);
    EXPECT_EQ(ReasonOf(SubmitAs(jobs_service_, Signed(command)).status()), "COMMAND_REFUSED");
    EXPECT_EQ(ReasonOf(Get(command.job()).status()), "JOB_NOT_FOUND");
  }
  for (const std::string_view action : {kDeploymentAction, kBuildAction}) {
    const auto submitted = SubmitAs(jobs_service_, Signed(CommandOf(action)));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    EXPECT_TRUE(CancelAs(jobs_service_, CancelRequest(submitted->job())).ok());
  }
}

TEST_F(DeploymentJobsTest, JobsServiceCancelsDeploymentsAlone) {
  for (const std::string_view action : {kExecAction, kRudderAction, kContainerAction}) {
    SCOPED_TRACE(action);
    const v1::Command command = CommandOf(action);
    ASSERT_TRUE(SubmitAs(fleet_.admin(), Signed(command)).ok());
    v1::CancelJobRequest request = CancelRequest(command.job());
    EXPECT_EQ(ReasonOf(CancelAs(jobs_service_, request).status()), "NOT_A_DEPLOYMENT");
    *request.mutable_submission() = Signed(command);
    EXPECT_EQ(ReasonOf(CancelAs(jobs_service_, request).status()), "NOT_A_DEPLOYMENT");
    const v1::Command other = CommandOf(action);
    request = CancelRequest(other.job());
    *request.mutable_submission() = Signed(other);
    EXPECT_EQ(ReasonOf(CancelAs(jobs_service_, request).status()), "COMMAND_REFUSED");
    EXPECT_EQ(ReasonOf(Get(other.job()).status()), "JOB_NOT_FOUND");
  }
  const v1::Command command = CommandOf(kDeploymentAction);
  EXPECT_EQ(ReasonOf(CancelAs(jobs_service_, CancelRequest(command.job())).status()),
            "JOB_NOT_FOUND");
  ASSERT_TRUE(SubmitAs(jobs_service_, Signed(command)).ok());
  const auto cancelled = CancelAs(jobs_service_, CancelRequest(command.job()));
  EXPECT_TRUE(cancelled.ok()) << cancelled.status();
}

TEST_F(DeploymentJobsTest, CancellationNamesAnOperatorOnlyIfItIsOfTheJobsService) {
  const v1::Command command = CommandOf(kDeploymentAction);
  const v1::SubmitJobRequest submission = Signed(command);
  ASSERT_TRUE(SubmitAs(jobs_service_, submission).ok());
  EXPECT_EQ(ReasonOf(CancelAs(fleet_.admin(), CancelRequest(command.job())).status()),
            "INVALID_CANCELLATION");
  v1::CancelJobRequest request;
  request.set_job(command.job());
  *request.mutable_submission() = submission;
  EXPECT_EQ(ReasonOf(CancelAs(fleet_.admin(), request).status()), "INVALID_CANCELLATION");
  request.clear_submission();
  for (const std::string& actor :
       {std::string(), absl::StrCat("spiffe://", fleet_.name(), "/service/jobs/jobs"),
        std::string("spiffe://fleet-00112233.muster/user/bob")}) {
    request.set_actor(actor);
    EXPECT_EQ(ReasonOf(CancelAs(jobs_service_, request).status()), "INVALID_CANCELLATION") << actor;
  }
}

// The answer to an earlier submission was lost: it may still arrive.
TEST_F(DeploymentJobsTest, CancelledBeforeItsSubmissionArrivesItNeverRuns) {
  const v1::Command command = CommandOf(kDeploymentAction);
  const v1::SubmitJobRequest submission = Signed(command);
  v1::CancelJobRequest request = CancelRequest(command.job());
  *request.mutable_submission() = submission;
  for (int i = 0; i < 2; ++i) {
    const auto cancelled = CancelAs(jobs_service_, request);
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  }
  ASSERT_TRUE(SubmitAs(jobs_service_, submission).ok());
  ASSERT_TRUE(testing::Await([&] { return Get(command.job())->state() != v1::JOB_STATE_RUNNING; }));
  EXPECT_EQ(Get(command.job())->state(), v1::JOB_STATE_CANCELLED);

  v1::ListAuditRecordsRequest wanted;
  wanted.set_subject(command.job());
  v1::ListAuditRecordsResponse log;
  ASSERT_TRUE(testing::Await([&] {
    auto list = CallUnary<v1::AuditService>(fleet_.Connect(fleet_.admin()),
                                            &v1::AuditService::Stub::ListAuditRecords, wanted);
    if (list.ok()) log = *std::move(list);
    return log.records_size() == 2;
  }));
  EXPECT_NE(log.records(0).actor(), Operator());  // who signed it
  EXPECT_EQ(log.records(1).actor(), Operator());
}

TEST_F(DeploymentJobsTest, CancellationWithASubmissionIsCheckedLikeIt) {
  v1::Command command = CommandOf(kDeploymentAction);
  v1::CancelJobRequest request = CancelRequest(RandomHex(16));
  *request.mutable_submission() = Signed(command);
  EXPECT_EQ(ReasonOf(CancelAs(jobs_service_, request).status()), "COMMAND_REFUSED");
  request.set_job(command.job());
  request.mutable_submission()->set_nodes(0, "n2");
  EXPECT_EQ(ReasonOf(CancelAs(jobs_service_, request).status()), "INVALID_COMMAND");
  ToProto(absl::Now() - absl::Hours(2), command.mutable_not_before());
  ToProto(absl::Now() - absl::Hours(1), command.mutable_not_after());
  *request.mutable_submission() = Signed(command);
  EXPECT_EQ(ReasonOf(CancelAs(jobs_service_, request).status()), "COMMAND_EXPIRED");
  EXPECT_EQ(ReasonOf(Get(command.job()).status()), "JOB_NOT_FOUND");
}

}  // namespace
}  // namespace muster
