// Joining over TLS: tokens, proofs, names, and revocation.
#include <grpcpp/client_context.h>

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/aggregator/testing/join_fixture.h"
#include "services/common/base/error.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster {
namespace {

using testing::JoinFixture;
using testing::Machine;
using testing::TestFleet;
using testing::TestIdentity;

class JoinTest : public JoinFixture {};

TEST_F(JoinTest, JoinedMachineIsServedAsANode) {
  const Token token = Create("n1");
  const Machine machine;
  const auto joined = Join(token, machine);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->node(), "n1");
  EXPECT_EQ(joined->fleet_ca_pem(), fleet_.fleet_ca_pem());
  const auto leaf = Certificate::FromPem(joined->certificate_chain_pem());
  EXPECT_EQ(*leaf->Uri(), absl::StrCat("spiffe://", fleet_.name(), "/node/n1"));
  EXPECT_LE(leaf->NotAfter(), absl::Now() + absl::Hours(1));
  // The plan names the node, so its identity is sufficient for the run.
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1"});
  v1::GetRunRequest get;
  get.set_run(run.id());
  const TestIdentity node = IdentityOf(*joined, machine);
  EXPECT_TRUE(Call<v1::RunService>(fleet_.Connect(node), &v1::RunService::Stub::GetRun, get).ok());
  // The node renews its certificate.
  const Machine next;
  const auto renewed = Renew(node, next);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->uri(), *leaf->Uri());
  // It is in the register under the token's name, whatever names its request contained.
  v1::GetEnrolledNodeRequest request;
  request.set_node("n1");
  const auto record = Enroll(&v1::EnrollmentService::Stub::GetEnrolledNode, request);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->uri(), *leaf->Uri());
  EXPECT_EQ(record->join_token(), token.id);
  EXPECT_FALSE(record->revoked());
}

TEST_F(JoinTest, TokenIsForOneKeyWhichMayRepeatTheRequest) {
  const Token token = Create("n1");
  const Machine machine;
  const auto first = Join(token, machine);
  const auto again = Join(token, machine);
  ASSERT_TRUE(first.ok() && again.ok()) << first.status() << again.status();
  EXPECT_EQ(first->certificate_chain_pem(), again->certificate_chain_pem());
  EXPECT_EQ(ReasonOf(Join(token, Machine()).status()), "TOKEN_USED");
  EXPECT_EQ(ReasonOf(Join(token, Machine(), "n2").status()), "TOKEN_OF_OTHER_NODE");
}

TEST_F(JoinTest, ConcurrentJoinsEnrolOneMachine) {
  const Token token = Create("n1");
  std::vector<std::future<std::string>> outcomes;
  for (int i = 0; i < 8; ++i) {
    outcomes.push_back(std::async(std::launch::async, [&] {
      const auto joined = Join(token, Machine());
      return joined.ok() ? std::string("joined") : std::string(ReasonOf(joined.status()));
    }));
  }
  int joined = 0;
  for (auto& outcome : outcomes) {
    const std::string what = outcome.get();
    if (what == "joined") ++joined;
    EXPECT_TRUE(what == "joined" || what == "TOKEN_USED") << what;
  }
  EXPECT_EQ(joined, 1);
}

TEST_F(JoinTest, RequestWithoutProofIsRefused) {
  const Token token = Create("n1");
  const Machine machine;
  const v1::JoinRequest good = JoinRequestOf(token, machine, "");
  const struct {
    std::function<void(v1::JoinRequest*)> change;
    std::string reason;
  } cases[] = {
      {[](auto* r) { r->set_token_id(std::string(32, '0')); }, "TOKEN_REFUSED"},
      {[](auto* r) { r->set_token_id(""); }, "TOKEN_REFUSED"},
      {[](auto* r) { r->set_proof(""); }, "TOKEN_REFUSED"},
      {[](auto* r) { (*r->mutable_proof())[8] ^= 1; }, "TOKEN_REFUSED"},
      {[](auto* r) { r->set_csr_pem(Machine().csr); }, "TOKEN_REFUSED"},
      {[](auto* r) { r->set_node("n2"); }, "TOKEN_REFUSED"},
      {[](auto* r) { r->set_csr_pem("nonsense"); }, "INVALID_CSR"},
      {[](auto* r) { r->set_csr_pem(std::string(20'000, 'x')); }, "INVALID_CSR"},
  };
  for (const auto& c : cases) {
    v1::JoinRequest request = good;
    c.change(&request);
    EXPECT_EQ(ReasonOf(Join(request).status()), c.reason);
  }
  v1::JoinRequest huge = good;
  huge.set_node(std::string(100'000, 'n'));
  EXPECT_EQ(Join(huge).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(Join(token, machine, "global").status()), "INVALID_TOKEN");
  EXPECT_EQ(ReasonOf(Join(token, machine, "root").status()), "INVALID_TOKEN");
  EXPECT_EQ(ReasonOf(Join(token, machine, "../n1").status()), "INVALID_NAME");
  EXPECT_TRUE(Join(good).ok());  // no refused request consumed a use
}

TEST_F(JoinTest, TokenForAnyNodeCannotUseAnEnrolledName) {
  ASSERT_TRUE(Join(Create("n1"), Machine()).ok());
  const Token token = Create("", 2);
  EXPECT_EQ(ReasonOf(Join(token, Machine(), "n1").status()), "NODE_ENROLLED");
  EXPECT_EQ(ReasonOf(Join(token, Machine()).status()), "INVALID_NAME");
  EXPECT_EQ(ReasonOf(Join(token, Machine(), "root").status()), "INVALID_TOKEN");
  EXPECT_TRUE(Join(token, Machine(), "n2").ok());
  EXPECT_TRUE(Join(token, Machine(), "n3").ok());
  EXPECT_EQ(ReasonOf(Join(token, Machine(), "n4").status()), "TOKEN_USED");
}

TEST_F(JoinTest, InvalidTokensAreRefused) {
  const Token token{std::string(32, 'a')};
  const struct {
    std::function<void(v1::CreateJoinTokenRequest*)> change;
    std::string reason;
  } cases[] = {
      {[](auto* r) { r->set_id("A"); }, "INVALID_TOKEN"},
      {[](auto* r) { r->set_public_key_pem("x"); }, "INVALID_TOKEN"},
      {[](auto* r) { r->set_node("global"); }, "INVALID_TOKEN"},
      {[](auto* r) { r->set_node("root"); }, "INVALID_TOKEN"},
      {[](auto* r) { r->set_node("a/b"); }, "INVALID_NAME"},
      {[](auto* r) { r->set_node("-n"); }, "INVALID_NAME"},
      {[](auto* r) { r->set_count(2); }, "INVALID_TOKEN"},
      {[](auto* r) { r->clear_node(); }, "INVALID_TOKEN"},
      {[](auto* r) {
         r->clear_node();
         r->set_count(10'001);
       },
       "INVALID_TOKEN"},
      {[](auto* r) { r->mutable_ttl()->set_seconds(59); }, "INVALID_TIMEOUT"},
      {[](auto* r) { r->mutable_ttl()->set_seconds(86'401); }, "INVALID_TIMEOUT"},
      {[](auto* r) { (*r->mutable_labels())["a b"] = ""; }, "INVALID_LABEL"},
      {[](auto* r) { (*r->mutable_labels())[""] = "x"; }, "INVALID_LABEL"},
      {[](auto* r) { (*r->mutable_labels())["x"] = "line\nbreak"; }, "INVALID_LABEL"},
  };
  for (const auto& c : cases) {
    v1::CreateJoinTokenRequest request = Request(token, "n1", 0);
    c.change(&request);
    const auto created = Enroll(&v1::EnrollmentService::Stub::CreateJoinToken, request);
    EXPECT_EQ(ReasonOf(created.status()), c.reason) << request.ShortDebugString();
  }
}

TEST_F(JoinTest, StreamsOfARevokedNodeEndWithinSeconds) {
  const Machine machine;
  const auto joined = Join(Create("n1"), machine);
  ASSERT_TRUE(joined.ok());
  const TestIdentity node = IdentityOf(*joined, machine);
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1"});
  v1::WatchRunRequest watch;
  watch.set_run(run.id());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto stub = v1::RunService::NewStub(fleet_.Connect(node));
  const auto stream = stub->WatchRun(&context, watch);
  v1::Run seen;
  ASSERT_TRUE(stream->Read(&seen));
  ASSERT_TRUE(Revoke("n1").ok());
  while (stream->Read(&seen)) {
  }
  EXPECT_NE(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Renew(node, Machine()).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonOf(Rejoin(node.chain_pem, machine.key, Machine()).status()), "NODE_REVOKED");
  // The name is reserved until an operator removes the node.
  v1::CreateJoinTokenRequest request = Request(Token{std::string(32, 'b')}, "n1", 0);
  EXPECT_EQ(ReasonOf(Enroll(&v1::EnrollmentService::Stub::CreateJoinToken, request).status()),
            "NODE_REVOKED");
  v1::RemoveNodeRequest remove;
  remove.set_node("n1");
  EXPECT_TRUE(Enroll(&v1::EnrollmentService::Stub::RemoveNode, remove).ok());
  EXPECT_EQ(ReasonOf(Rejoin(node.chain_pem, machine.key, Machine()).status()), "NODE_NOT_ENROLLED");
  EXPECT_TRUE(Join(Create("n1"), Machine()).ok());
}

TEST_F(JoinTest, ExpiredCertificateIsRenewed) {
  const Machine machine;
  const auto joined = Join(Create("n1"), machine);
  ASSERT_TRUE(joined.ok());
  const Machine next;
  const auto back = Rejoin(joined->certificate_chain_pem(), machine.key, next);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->node(), "n1");
  EXPECT_TRUE(Renew(IdentityOf(*back, next), Machine()).ok());
  // A request with another key, with a certificate that is not a node's, or of another fleet is
  // refused.
  EXPECT_EQ(ReasonOf(Rejoin(joined->certificate_chain_pem(), next.key, Machine()).status()),
            "RETURN_REFUSED");
  EXPECT_EQ(ReasonOf(Rejoin(fleet_.admin().chain_pem, *PrivateKey::FromPem(fleet_.admin().key_pem),
                            Machine())
                         .status()),
            "RETURN_REFUSED");
  TestFleet other;
  const TestIdentity stranger = other.Issue(NodeIdentity{"n1"});
  EXPECT_EQ(
      ReasonOf(
          Rejoin(stranger.chain_pem, *PrivateKey::FromPem(stranger.key_pem), Machine()).status()),
      "RETURN_REFUSED");
  EXPECT_EQ(ReasonOf(Rejoin("nonsense", machine.key, Machine()).status()), "CERTIFICATE_MALFORMED");
  // The earlier certificate is refused after another machine joined under the name.
  ASSERT_TRUE(Join(Create("n1"), Machine()).ok());
  EXPECT_EQ(ReasonOf(Rejoin(joined->certificate_chain_pem(), machine.key, Machine()).status()),
            "RETURN_REFUSED");
}

TEST_F(JoinTest, JoinListenerServesNothingElse) {
  v1::ListRunsRequest request;
  EXPECT_EQ(Call<v1::RunService>(fleet_.ConnectToJoin(), &v1::RunService::Stub::ListRuns, request)
                .status()
                .code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(JoinTest, RenewalsOfANodeAreLimited) {
  const Machine machine;
  const auto joined = Join(Create("n1"), machine);
  ASSERT_TRUE(joined.ok()) << joined.status();
  const TestIdentity node = IdentityOf(*joined, machine);
  const Machine next;
  // The first certificate counts too.
  for (int i = 1; i < kMaxRenewals; ++i) ASSERT_TRUE(Renew(node, next).ok());
  EXPECT_EQ(ReasonOf(Renew(node, next).status()), "RENEWAL_LIMIT");
  EXPECT_EQ(ReasonOf(Rejoin(joined->certificate_chain_pem(), machine.key, next).status()),
            "RENEWAL_LIMIT");
  EXPECT_TRUE(Revoke("n1").ok());
}

}  // namespace
}  // namespace muster
