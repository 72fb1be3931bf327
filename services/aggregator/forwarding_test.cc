// Calls of relays on behalf of nodes, over TLS.
#include "services/common/rpc/forwarding.h"

#include <grpcpp/client_context.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/enrollment.grpc.pb.h"
#include "muster/v1/identities.grpc.pb.h"
#include "muster/v1/join.grpc.pb.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/join_token.h"
#include "services/common/identity/key.h"
#include "services/common/identity/result_signature.h"
#include "services/common/identity/signing_request.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::SmallResult;
using testing::TestFleet;
using testing::TestIdentity;

using Metadata = std::vector<std::pair<std::string, std::string>>;

class ForwardingTest : public ::testing::Test {
 protected:
  std::string UriOf(const std::string& path) {
    return absl::StrCat("spiffe://", fleet_.name(), "/", path);
  }

  // Returns the attach statement of `node` for a relay.
  std::string Statement(const TestIdentity& identity, const std::string& node,
                        absl::Duration lasts = absl::Minutes(30)) {
    const auto statement = SignAttachStatement(
        *PrivateKey::FromPem(identity.key_pem), identity.chain_pem, UriOf("node/" + node),
        UriOf("service/relay/r2"), std::string(32, 'k'), absl::Now() + lasts);
    return statement->SerializeAsString();
  }

  Metadata For(const std::string& node, const std::string& statement) {
    return {{kForwardedIdentity, UriOf("node/" + node)}, {kAttachStatement, statement}};
  }

  template <typename Service, typename Request, typename Response>
  absl::StatusOr<Response> Call(const TestIdentity& as, const Metadata& metadata,
                                grpc::Status (Service::Stub::*method)(grpc::ClientContext*,
                                                                      const Request&, Response*),
                                const Request& request) {
    return testing::CallUnary<Service>(fleet_.Connect(as), method, request, metadata);
  }

  absl::Status GetRun(const TestIdentity& as, const Metadata& metadata) {
    v1::GetRunRequest request;
    request.set_run(run_.id());
    return Call<v1::RunService>(as, metadata, &v1::RunService::Stub::GetRun, request).status();
  }

  // The gate refuses with the reason in the message.
  static bool Is(const absl::Status& status, const std::string& reason) {
    return status.message().find(reason) != absl::string_view::npos;
  }

  TestFleet fleet_;
  const v1::Run run_ = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"});
  const TestIdentity relay_ = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "root"});
  const TestIdentity n1_ = fleet_.Issue(NodeIdentity{"n1"});
  const std::string statement_ = Statement(n1_, "n1");
};

TEST_F(ForwardingTest, RelayCallsForANodeWithItsStatement) {
  EXPECT_TRUE(GetRun(relay_, For("n1", statement_)).ok());
  EXPECT_TRUE(GetRun(relay_, For("n1", statement_)).ok()) << "also when it is remembered";
}

// A call that has begun no longer counts as waiting.
TEST_F(ForwardingTest, RelayCallsForANodeMoreOftenThanCallsMayWait) {
  const auto channel = fleet_.Connect(relay_);
  v1::GetRunRequest request;
  request.set_run(run_.id());
  for (int64_t i = 0; i < kWaitingCallsOfNode + 20; ++i) {
    const auto run = testing::CallUnary<v1::RunService>(channel, &v1::RunService::Stub::GetRun,
                                                        request, For("n1", statement_));
    ASSERT_TRUE(run.ok()) << i << ": " << run.status();
  }
}

TEST_F(ForwardingTest, CallWithoutValidStatementIsRefused) {
  const std::string reason = "IDENTITY_NOT_FORWARDABLE";
  EXPECT_TRUE(GetRun(relay_, For("n1", statement_)).ok());
  EXPECT_TRUE(Is(GetRun(relay_, {{kForwardedIdentity, UriOf("node/n1")}}), reason));
  EXPECT_TRUE(Is(GetRun(relay_, For("n2", statement_)), reason)) << "another's";
  EXPECT_TRUE(Is(GetRun(relay_, For("n2", Statement(n1_, "n2"))), reason)) << "forged";
  EXPECT_TRUE(Is(GetRun(relay_, For("n1", Statement(n1_, "n1", -absl::Seconds(5)))), reason));
  EXPECT_TRUE(Is(GetRun(relay_, For("n1", "nonsense")), reason));
  EXPECT_TRUE(Is(GetRun(relay_, For("n1", std::string(7000, 'x'))), reason));
  Metadata twice = For("n1", statement_);
  twice.emplace_back(kAttachStatement, statement_);
  EXPECT_TRUE(Is(GetRun(relay_, twice), reason));
  twice = For("n1", statement_);
  twice.emplace_back(kForwardedIdentity, UriOf("node/n1"));
  EXPECT_TRUE(Is(GetRun(relay_, twice), reason));
}

TEST_F(ForwardingTest, RelayMayCallOnlyForNodes) {
  Metadata metadata = {{kForwardedIdentity, UriOf("user/tester")}, {kAttachStatement, statement_}};
  EXPECT_TRUE(Is(GetRun(relay_, metadata), "IDENTITY_NOT_FORWARDABLE"));
  EXPECT_TRUE(Is(GetRun(n1_, For("n1", statement_)), "IDENTITY_NOT_FORWARDABLE")) << "by a node";
  const TestIdentity status = fleet_.Issue(ServiceIdentity{ServiceRole::kStatus, "s"});
  EXPECT_TRUE(Is(GetRun(status, For("n1", statement_)), "IDENTITY_NOT_FORWARDABLE"));
}

TEST_F(ForwardingTest, GatewayNamesAtMostOneCertificate) {
  const TestIdentity gateway = fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g"});
  Metadata metadata = {{kForwardedIdentity, UriOf("user/tester")}, {kForwardedCertificate, "ca:1"}};
  EXPECT_TRUE(GetRun(gateway, metadata).ok());
  metadata.emplace_back(kForwardedCertificate, "ca:2");
  EXPECT_TRUE(Is(GetRun(gateway, metadata), "IDENTITY_NOT_FORWARDABLE"));
  metadata.pop_back();
  metadata.back().second = std::string(129, 'a');
  EXPECT_TRUE(Is(GetRun(gateway, metadata), "IDENTITY_NOT_FORWARDABLE"));
}

// Nothing but the word of the gateway proves that its client has a certificate.
TEST_F(ForwardingTest, GatewayForwardsOnlyOperatorsThatTheFleetHasRecorded) {
  const TestIdentity gateway = fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g"});
  const auto as = [&](const std::string& name) {
    return GetRun(gateway, {{kForwardedIdentity, UriOf("user/" + name)}});
  };
  EXPECT_TRUE(as("tester").ok()) << as("tester") << ": recorded at the first start";
  const absl::Status refused = as("ann");
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Is(refused, "OPERATOR_NOT_RECORDED")) << refused;
  v1::AddOperatorRequest add;
  add.set_name("ann");
  add.set_csr_pem(*CreateSigningRequest(*PrivateKey::Generate()));
  ASSERT_TRUE(
      Call<v1::IdentityService>(fleet_.admin(), {}, &v1::IdentityService::Stub::AddOperator, add)
          .ok());
  EXPECT_TRUE(as("ann").ok()) << as("ann");
  fleet_.Stop();
  fleet_.Start();
  EXPECT_TRUE(as("ann").ok()) << as("ann") << ": after a restart";
  v1::RevokeOperatorRequest revoke;
  revoke.set_name("ann");
  ASSERT_TRUE(Call<v1::IdentityService>(fleet_.admin(), {},
                                        &v1::IdentityService::Stub::RevokeOperator, revoke)
                  .ok());
  EXPECT_TRUE(testing::Await([&] { return Is(as("ann"), "REVOKED"); })) << as("ann");
}

TEST_F(ForwardingTest, RenewalThroughARelayIsRefused) {
  v1::RenewCertificateRequest request;
  request.set_csr_pem(*CreateSigningRequest(*PrivateKey::Generate()));
  const auto renewed = Call<v1::IdentityService>(
      relay_, For("n1", statement_), &v1::IdentityService::Stub::RenewCertificate, request);
  EXPECT_TRUE(Is(renewed.status(), "ROLE_NOT_ALLOWED")) << renewed.status();
}

TEST_F(ForwardingTest, ForwardedResultMustBeSignedAndNamesTheRelay) {
  const auto submit = [&](const v1::SubmitResultRequest& request) {
    return Call<v1::ResultService>(relay_, For("n1", statement_),
                                   &v1::ResultService::Stub::SubmitResult, request);
  };
  v1::SubmitResultRequest request = SmallResult(run_.id(), "hostfacts", "n1", "content");
  EXPECT_EQ(ReasonOf(submit(request).status()), "SIGNATURE_REQUIRED");

  const PrivateKey key = *PrivateKey::FromPem(n1_.key_pem);
  request.mutable_signature()->set_certificate_chain_pem(n1_.chain_pem);
  SignedResult signed_result = {.run = run_.id(),
                                .plugin = "hostfacts",
                                .node = "n1",
                                .attempt = 1,
                                .size = 7,
                                .sha256 = std::string(32, 'x'),
                                .media_type = request.description().media_type(),
                                .file_name = request.description().file_name()};
  request.mutable_signature()->set_value(*SignResult(key, signed_result));
  EXPECT_EQ(ReasonOf(submit(request).status()), "INVALID_SIGNATURE");

  signed_result.sha256 = request.sha256();
  request.mutable_signature()->set_value(*SignResult(key, signed_result));
  v1::SubmitResultRequest changed = request;
  changed.mutable_description()->set_media_type("application/gzip");
  EXPECT_EQ(ReasonOf(submit(changed).status()), "INVALID_SIGNATURE");
  changed = request;
  changed.mutable_description()->set_file_name("other.json");
  EXPECT_EQ(ReasonOf(submit(changed).status()), "INVALID_SIGNATURE");
  const auto result = submit(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->delivery().uri(), UriOf("node/n1"));
  EXPECT_EQ(result->delivery().vouched_by(), UriOf("service/relay/root"));
  EXPECT_TRUE(result->delivery().signed_());
  EXPECT_EQ(ReasonOf(submit(SmallResult(run_.id(), "hostfacts", "n2", "x")).status()), "NOT_YOURS");
}

TEST_F(ForwardingTest, RevokedNodeBehindARelayIsRefusedAndItsStreamEnds) {
  // The node joins, so that the fleet has recorded its certificate.
  const PrivateKey token_key = *PrivateKey::Generate();
  v1::CreateJoinTokenRequest create;
  create.set_id(std::string(32, 'a'));
  create.set_public_key_pem(*token_key.public_key().ToPem());
  create.set_node("n1");
  ASSERT_TRUE(Call<v1::EnrollmentService>(fleet_.admin(), {},
                                          &v1::EnrollmentService::Stub::CreateJoinToken, create)
                  .ok());
  const PrivateKey key = *PrivateKey::Generate();
  v1::JoinRequest join;
  join.set_token_id(create.id());
  join.set_csr_pem(*CreateSigningRequest(key));
  join.set_proof(*token_key.Sign(JoinProofText(create.id(), "", join.csr_pem())));
  v1::NodeCertificate certificate;
  grpc::ClientContext joining;
  ASSERT_TRUE(
      v1::JoinService::NewStub(fleet_.ConnectToJoin())->Join(&joining, join, &certificate).ok());
  const TestIdentity node = {certificate.certificate_chain_pem(),
                             std::string(key.ToPkcs8Pem()->view())};
  const Metadata metadata = For("n1", Statement(node, "n1"));

  grpc::ClientContext watching;
  watching.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  for (const auto& [name, value] : metadata) watching.AddMetadata(name, value);
  v1::WatchRunRequest watch;
  watch.set_run(run_.id());
  const auto stub = v1::RunService::NewStub(fleet_.Connect(relay_));
  const auto stream = stub->WatchRun(&watching, watch);
  v1::Run run;
  ASSERT_TRUE(stream->Read(&run));
  ASSERT_TRUE(GetRun(relay_, metadata).ok());

  v1::RevokeNodeRequest revoke;
  revoke.set_node("n1");
  ASSERT_TRUE(Call<v1::EnrollmentService>(fleet_.admin(), {},
                                          &v1::EnrollmentService::Stub::RevokeNode, revoke)
                  .ok());
  while (stream->Read(&run)) {
  }
  const grpc::Status ended = stream->Finish();
  EXPECT_NE(ended.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << ended.error_message();
  EXPECT_NE(ended.error_code(), grpc::StatusCode::OK);
  EXPECT_FALSE(GetRun(relay_, metadata).ok());
  EXPECT_TRUE(GetRun(relay_, For("n2", Statement(fleet_.Issue(NodeIdentity{"n2"}), "n2"))).ok())
      << "others are not affected";
}

}  // namespace
}  // namespace muster
