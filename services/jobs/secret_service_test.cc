// Secrets over TLS, from the operator to the node, directly and through a relay.
#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/deployments.grpc.pb.h"
#include "muster/v1/enrollment.grpc.pb.h"
#include "muster/v1/identities.grpc.pb.h"
#include "muster/v1/join.grpc.pb.h"
#include "muster/v1/secrets.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/join_token.h"
#include "services/common/identity/signing_request.h"
#include "services/common/jobs/secrets_exchange.h"
#include "services/common/rpc/forwarding.h"
#include "services/jobs/secret_reads.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_call.h"

namespace muster {
namespace {

using testing::CallUnary;
using ::testing::HasSubstr;
using testing::TestIdentity;
using Metadata = std::vector<std::pair<std::string, std::string>>;

SigningFiles FilesOf(const TestIdentity& identity) {
  return {*PrivateKey::FromPem(identity.key_pem), identity.chain_pem};
}

// Returns the reason of a refusal. The gate before the handlers states it in the text alone.
std::string ReasonOrText(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  const std::string text(status.message());
  return reason.empty() ? text.substr(0, text.find(':')) : reason;
}

class SecretServiceTest : public testing::JobsFixture {
 protected:
  absl::StatusOr<v1::Secret> Put(const std::string& name, const std::string& value) {
    v1::PutSecretRequest request;
    request.set_secret(name);
    request.set_value(value);
    return CallUnary<v1::SecretService>(Connect(fleet_.admin()),
                                        &v1::SecretService::Stub::PutSecret, request);
  }
  absl::Status Delete(const std::string& name) {
    v1::DeleteSecretRequest request;
    request.set_secret(name);
    return CallUnary<v1::SecretService>(Connect(fleet_.admin()),
                                        &v1::SecretService::Stub::DeleteSecret, request)
        .status();
  }
  static std::string TypeWithSecret() {
    return absl::StrCat(TypeDocument("2.0.0"), "secrets:\n  db: {required: true}\n");
  }

  v1::PlanDeploymentRequest Wanted(const std::string& secret, int64_t version = 0) {
    v1::PlanDeploymentRequest wanted;
    wanted.set_type("greet@2.0.0");
    wanted.set_parameters(R"({"name": "Ada"})");
    auto& reference = *wanted.add_secrets();
    reference.set_name("db");
    reference.set_secret(secret);
    reference.set_version(version);
    return wanted;
  }

  // Creates a deployment of "greet@2.0.0" with the newest version of prod/db.
  v1::Deployment Begin(const std::vector<std::string>& nodes) {
    return Begin(nodes, fleet_.admin());
  }
  v1::Deployment Begin(const std::vector<std::string>& nodes, const TestIdentity& creator) {
    EXPECT_TRUE(CreateType(TypeWithSecret()).ok());
    const auto plan = Plan(Wanted("prod/db"));
    EXPECT_TRUE(plan.ok()) << plan.status();
    v1::Command command = CommandOf(Request(nodes));
    const std::string id = command.container().deployment().deployment();
    *command.mutable_container()->mutable_deployment() = plan->deployment();
    command.mutable_container()->mutable_deployment()->set_deployment(id);
    const auto created = CallUnary<v1::DeploymentService>(
        Connect(creator), &v1::DeploymentService::Stub::CreateDeployment,
        SignedRequest(creator, std::move(command), nodes));
    EXPECT_TRUE(created.ok()) << created.status();
    EXPECT_TRUE(relay_.AwaitJob(created->job()));
    return *created;
  }

  SecretsRequest RequestOf(const TestIdentity& node, const v1::Deployment& deployment,
                           const std::string& name = "n1") {
    return *MakeSecretsRequest(FilesOf(node), fleet_.name(), deployment.job(), name);
  }
  absl::StatusOr<v1::FetchSecretsResponse> Send(const TestIdentity& caller,
                                                const v1::FetchSecretsRequest& request,
                                                const Metadata& metadata = {}) {
    return CallUnary<v1::SecretService>(Connect(caller), &v1::SecretService::Stub::FetchSecrets,
                                        request, metadata);
  }
  std::string Refusal(const TestIdentity& caller, const v1::FetchSecretsRequest& request) {
    return ReasonOrText(Send(caller, request).status());
  }
  // Returns the value of the first secret, or the reason of the failure.
  std::string Fetch(const v1::Deployment& deployment) {
    const SecretsRequest request = RequestOf(node_, deployment);
    const auto response = Send(node_, request.message);
    return response.ok() ? Open(request, *response) : ReasonOf(response.status());
  }
  std::string Open(const SecretsRequest& request, const v1::FetchSecretsResponse& response) {
    const std::vector<Certificate> roots = *ParseChain(fleet_.fleet_ca_pem());
    const auto values = OpenSecrets(request, fleet_.name(), roots, absl::Now(), response);
    return values.ok() ? values->values(0).value() : ReasonOf(values.status());
  }

  const TestIdentity node_ = fleet_.Issue(NodeIdentity{"n1"});
};

TEST_F(SecretServiceTest, NodeOfADeploymentReadsTheSignedVersion) {
  ASSERT_TRUE(Put("prod/db", "first").ok());
  const v1::Deployment created = Begin({"n1"});
  ASSERT_EQ(created.secrets_size(), 1);
  EXPECT_EQ(created.secrets(0).secret(), "prod/db");
  EXPECT_EQ(created.secrets(0).version(), 1);
  ASSERT_TRUE(Put("prod/db", "second").ok());
  EXPECT_EQ(Fetch(created), "first");
  StopService();
  StartService();
  EXPECT_EQ(Fetch(created), "first");
}

TEST_F(SecretServiceTest, PlanNamesTheNewestVersionAndRefusesWhatIsNotStored) {
  ASSERT_TRUE(CreateType(TypeWithSecret()).ok());
  EXPECT_EQ(ReasonOf(Plan(Wanted("prod/db")).status()), "SECRET_NOT_FOUND");
  ASSERT_TRUE(Put("prod/db", "first").ok());
  ASSERT_TRUE(Put("prod/db", "second").ok());
  EXPECT_EQ(Plan(Wanted("prod/db"))->secrets(0).version(), 2);
  EXPECT_EQ(Plan(Wanted("prod/db", 1))->secrets(0).version(), 1);
  EXPECT_EQ(ReasonOf(Plan(Wanted("prod/db", 3)).status()), "SECRET_NOT_FOUND");
  v1::PlanDeploymentRequest without = Wanted("prod/db");
  without.clear_secrets();
  EXPECT_EQ(ReasonOf(Plan(without).status()), "INVALID_SECRETS");
}

// The number of a deleted version is never used again: storing the secret does not help.
TEST_F(SecretServiceTest, RetryWithADeletedSecretNamesANewDeployment) {
  ASSERT_TRUE(Put("prod/db", "first").ok());
  const v1::Deployment created = Begin({"n1"});
  v1::JobRecord record;
  record.set_node("n1");
  record.set_sequence(1);
  record.mutable_final()->set_outcome(v1::JOB_OUTCOME_FAILED);
  relay_.AddRecord(created.job(), record);
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_FAILED);
  v1::PlanDeploymentRequest retry;
  retry.set_retry_of(created.deployment());
  EXPECT_TRUE(Plan(retry).ok());
  ASSERT_TRUE(Delete("prod/db").ok());
  ASSERT_TRUE(Put("prod/db", "second").ok());
  const absl::Status refused = Plan(retry).status();
  EXPECT_EQ(ReasonOf(refused), "SECRET_NOT_FOUND");
  EXPECT_THAT(NextStepOf(refused), HasSubstr("Create a new deployment"));
}

TEST_F(SecretServiceTest, OtherNodesAndForgedRequestsGetNothing) {
  ASSERT_TRUE(Put("prod/db", "first").ok());
  const v1::Deployment created = Begin({"n1"});
  const TestIdentity other = fleet_.Issue(NodeIdentity{"n2"});
  EXPECT_EQ(Refusal(other, RequestOf(other, created, "n2").message), "JOB_NOT_FOUND");
  EXPECT_EQ(Refusal(other, RequestOf(node_, created).message), "SECRETS_REFUSED");
  EXPECT_EQ(Refusal(node_, RequestOf(other, created).message), "SECRETS_REFUSED");
  v1::Deployment unknown;
  unknown.set_job("0123456789abcdef0123456789abcdef");
  EXPECT_EQ(Refusal(node_, RequestOf(node_, unknown).message), "JOB_NOT_FOUND");
  EXPECT_EQ(Refusal(fleet_.admin(), RequestOf(node_, created).message), "ROLE_NOT_ALLOWED");
}

TEST_F(SecretServiceTest, RelayThatLiesNeitherReadsNorRepeats) {
  ASSERT_TRUE(Put("prod/db", "first").ok());
  const v1::Deployment created = Begin({"n1"});
  const TestIdentity relay = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"});
  const Certificate leaf = *Certificate::FromPem(relay.chain_pem);
  const auto uri = [&](const char* path) {
    return absl::StrCat("spiffe://", fleet_.name(), "/", path);
  };
  const auto statement = SignAttachStatement(
      *PrivateKey::FromPem(node_.key_pem), node_.chain_pem, uri("node/n1"), uri("service/relay/r1"),
      *leaf.Key()->Sha256(), absl::Now() + absl::Minutes(30));
  ASSERT_TRUE(statement.ok()) << statement.status();
  const Metadata metadata = {{kForwardedIdentity, uri("node/n1")},
                             {kAttachStatement, statement->SerializeAsString()}};
  const SecretsRequest request = RequestOf(node_, created);
  const auto response = Send(relay, request.message, metadata);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(Open(request, *response), "first");
  EXPECT_EQ(response->SerializeAsString().find("first"), std::string::npos);
  // The same request again, and one with a key of the relay.
  EXPECT_EQ(ReasonOf(Send(relay, request.message, metadata).status()), "SECRETS_REFUSED");
  const SecretsRequest own =
      *MakeSecretsRequest(FilesOf(relay), fleet_.name(), created.job(), "n1");
  EXPECT_EQ(ReasonOf(Send(relay, own.message, metadata).status()), "SECRETS_REFUSED");
  v1::FetchSecretsRequest exchanged = RequestOf(node_, created).message;
  exchanged.set_key(own.key.public_key());
  EXPECT_EQ(ReasonOf(Send(relay, exchanged, metadata).status()), "SECRETS_REFUSED");
}

TEST_F(SecretServiceTest, NodeThatHasStartedOrAskedTooOftenGetsNothing) {
  ASSERT_TRUE(Put("prod/db", "first").ok());
  const v1::Deployment created = Begin({"n1", "n2"});
  const TestIdentity other = fleet_.Issue(NodeIdentity{"n2"});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Refusal(other, RequestOf(other, created, "n2").message), "") << i;
  }
  EXPECT_EQ(Refusal(other, RequestOf(other, created, "n2").message), "SECRETS_CLOSED");
  EXPECT_EQ(Fetch(created), "first");
  v1::JobRecord started;
  started.set_node("n1");
  started.set_sequence(1);
  started.mutable_started()->mutable_time()->set_seconds(1'000);
  relay_.AddRecord(created.job(), started);
  EXPECT_TRUE(testing::Await([&] { return Get(created.deployment())->nodes_size() == 1; }));
  EXPECT_EQ(Fetch(created), "SECRETS_CLOSED");
}

TEST_F(SecretServiceTest, EndedDeploymentAndDeletedSecretGiveNothing) {
  ASSERT_TRUE(Put("prod/db", "first").ok());
  const v1::Deployment created = Begin({"n1"});
  ASSERT_TRUE(Delete("prod/db").ok());
  for (int i = 0; i <= kMaxSecretReads; ++i) {  // what sends nothing does not count
    EXPECT_EQ(Fetch(created), "SECRET_NOT_FOUND");
  }
  relay_.End(created.job(), v1::JOB_STATE_CANCELLED);
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_CANCELLED);
  EXPECT_EQ(Fetch(created), "SECRETS_CLOSED");
}

TEST_F(SecretServiceTest, CancelledDeploymentGivesNothing) {
  ASSERT_TRUE(Put("prod/db", "first").ok());
  const v1::Deployment created = Begin({"n1"});
  EXPECT_EQ(Fetch(created), "first");
  relay_.Stop();  // it does not end
  ASSERT_TRUE(Cancel(created.deployment()).ok());
  const auto refused = Send(node_, RequestOf(node_, created).message);
  EXPECT_EQ(ReasonOf(refused.status()), "SECRETS_CLOSED");
  EXPECT_TRUE(absl::StrContains(refused.status().message(), "was cancelled")) << refused.status();
}

TEST_F(SecretServiceTest, DeploymentOfARevokedCreatorGivesNothing) {
  v1::AddOperatorRequest add;
  add.set_name("bob");
  const PrivateKey key = *PrivateKey::Generate();
  add.set_csr_pem(*CreateSigningRequest(key));
  const auto added = CallUnary<v1::IdentityService>(fleet_.Connect(fleet_.admin()),
                                                    &v1::IdentityService::Stub::AddOperator, add);
  ASSERT_TRUE(added.ok()) << added.status();
  ASSERT_TRUE(Put("prod/db", "first").ok());
  const TestIdentity bob = {added->certificate_chain_pem(), std::string(key.ToPkcs8Pem()->view())};
  const v1::Deployment created = Begin({"n1"}, bob);
  EXPECT_EQ(Fetch(created), "first");
  v1::RevokeOperatorRequest revoke;
  revoke.set_name("bob");
  ASSERT_TRUE(CallUnary<v1::IdentityService>(fleet_.Connect(fleet_.admin()),
                                             &v1::IdentityService::Stub::RevokeOperator, revoke)
                  .ok());
  v1::GetDeploymentRequest get;
  get.set_deployment(created.deployment());
  EXPECT_TRUE(testing::Await([&] {  // the jobs service learns of it by the feed
    return ReasonOrText(CallUnary<v1::DeploymentService>(
                            Connect(bob), &v1::DeploymentService::Stub::GetDeployment, get)
                            .status()) == "REVOKED";
  }));
  const absl::Status refused = Send(node_, RequestOf(node_, created).message).status();
  EXPECT_EQ(ReasonOf(refused), "SECRETS_CLOSED");
  EXPECT_TRUE(absl::StrContains(refused.message(), "/user/bob, was revoked")) << refused;
}

TEST_F(SecretServiceTest, RevokedNodeGetsNothing) {
  // It joins, so that the fleet has recorded its certificate.
  const PrivateKey token_key = *PrivateKey::Generate();
  v1::CreateJoinTokenRequest create;
  create.set_id(std::string(32, 'a'));
  create.set_public_key_pem(*token_key.public_key().ToPem());
  create.set_node("n1");
  ASSERT_TRUE(CallUnary<v1::EnrollmentService>(fleet_.Connect(fleet_.admin()),
                                               &v1::EnrollmentService::Stub::CreateJoinToken,
                                               create)
                  .ok());
  const PrivateKey key = *PrivateKey::Generate();
  v1::JoinRequest join;
  join.set_token_id(create.id());
  join.set_csr_pem(*CreateSigningRequest(key));
  join.set_proof(*token_key.Sign(JoinProofText(create.id(), "", join.csr_pem())));
  const auto certificate =
      CallUnary<v1::JoinService>(fleet_.ConnectToJoin(), &v1::JoinService::Stub::Join, join);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  const TestIdentity joined = {certificate->certificate_chain_pem(),
                               std::string(key.ToPkcs8Pem()->view())};
  ASSERT_TRUE(Put("prod/db", "first").ok());
  const v1::Deployment created = Begin({"n1"});
  EXPECT_EQ(Refusal(joined, RequestOf(joined, created).message), "");
  v1::RevokeNodeRequest revoke;
  revoke.set_node("n1");
  ASSERT_TRUE(CallUnary<v1::EnrollmentService>(fleet_.Connect(fleet_.admin()),
                                               &v1::EnrollmentService::Stub::RevokeNode, revoke)
                  .ok());
  // The jobs service learns of it by the feed.
  EXPECT_TRUE(testing::Await(
      [&] { return Refusal(joined, RequestOf(joined, created).message) == "REVOKED"; }));
  // A request with its signature does not help another holder of the name.
  EXPECT_NE(Refusal(node_, RequestOf(joined, created).message), "");
}

TEST_F(SecretServiceTest, GatewayPutsAndDeletesNoSecret) {
  const TestIdentity gateway = fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g1"});
  const Metadata metadata = {
      {kForwardedIdentity, *Certificate::FromPem(fleet_.admin().chain_pem)->Uri()}};
  v1::PutSecretRequest put;
  put.set_secret("a");
  put.set_value("1");
  EXPECT_EQ(ReasonOrText(CallUnary<v1::SecretService>(
                             Connect(gateway), &v1::SecretService::Stub::PutSecret, put, metadata)
                             .status()),
            "ROLE_NOT_ALLOWED");
}

}  // namespace
}  // namespace muster
