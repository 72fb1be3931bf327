// Joining of relays, and of machines through relays.
#include <grpcpp/client_context.h>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/changes.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/aggregator/testing/join_fixture.h"
#include "services/common/base/error.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

using testing::JoinFixture;
using testing::Machine;
using testing::TestIdentity;

class RelayJoinTest : public JoinFixture {
 protected:
  using Names = std::vector<std::string>;

  v1::CreateJoinTokenRequest RelayRequest(const Token& token, const std::string& relay,
                                          const Names& parents = {}) {
    v1::CreateJoinTokenRequest request = Request(token, relay, 0);
    request.set_relay(true);
    request.mutable_parents()->Assign(parents.begin(), parents.end());
    return request;
  }

  absl::StatusOr<v1::CreateJoinTokenResponse> Ask(const v1::CreateJoinTokenRequest& request) {
    return Enroll(&v1::EnrollmentService::Stub::CreateJoinToken, request);
  }

  Token CreateRelay(const std::string& relay, const Names& parents = {}) {
    const Token token = NewToken();
    const auto created = Ask(RelayRequest(token, relay, parents));
    EXPECT_TRUE(created.ok()) << created.status();
    return token;
  }

  v1::JoinRequest RelayJoin(const Token& token, const Machine& machine,
                            const Names& targets = {"10.0.0.9:7445", "r1.example:7445"}) {
    v1::JoinRequest request = JoinRequestOf(token, machine, "");
    request.mutable_relay_targets()->Assign(targets.begin(), targets.end());
    request.add_join_targets("10.0.0.9:7446");
    return request;
  }

  // The identity of a joined relay.
  TestIdentity Joined(const std::string& relay, const Machine& machine, const Names& parents = {}) {
    const auto joined = Join(
        RelayJoin(CreateRelay(relay, parents), machine, {absl::StrCat(relay, ".example:7445")}));
    EXPECT_TRUE(joined.ok()) << joined.status();
    return IdentityOf(*joined, machine);
  }

  std::string UriOf(const std::string& path) {
    return absl::StrCat("spiffe://", fleet_.name(), "/", path);
  }

  // Calls the fleet's own listener, as relays do.
  template <typename Request>
  absl::StatusOr<v1::NodeCertificate> Relayed(
      const TestIdentity& as,
      grpc::Status (v1::JoinService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                    v1::NodeCertificate*),
      const Request& request) {
    return Call<v1::JoinService>(fleet_.Connect(as), method, request);
  }

  // Reads the first entry of the change feed; returns the error that the stream has instead.
  absl::Status Follow(const TestIdentity& as, const std::string& pairs_of_run) {
    v1::FollowChangesRequest request;
    request.set_pairs_of_run(pairs_of_run);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    const auto stub = v1::ChangeService::NewStub(fleet_.Connect(as));
    const auto stream = stub->FollowChanges(&context, request);
    v1::FollowChangesResponse change;
    const bool followed = stream->Read(&change);
    if (followed) context.TryCancel();
    const grpc::Status ended = stream->Finish();
    return followed ? absl::OkStatus() : FromGrpc(ended);
  }

  static Names List(const google::protobuf::RepeatedPtrField<std::string>& texts) {
    return {texts.begin(), texts.end()};
  }
};

TEST_F(RelayJoinTest, JoinedMachineIsARelay) {
  const Token token = CreateRelay("r1");
  const Machine machine;
  const auto joined = Join(RelayJoin(token, machine));
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_TRUE(joined->is_relay());
  EXPECT_EQ(joined->node(), "r1");
  EXPECT_FALSE(joined->command_ca_pem().empty());
  const auto chain = ParseChain(joined->certificate_chain_pem());
  const Certificate& leaf = chain->front();
  EXPECT_EQ(*leaf.Uri(), UriOf("service/relay/r1"));
  EXPECT_EQ(leaf.Hosts(), (Names{"10.0.0.9", "r1.example"}));
  EXPECT_LE(leaf.NotAfter(), absl::Now() + absl::Hours(24));
  EXPECT_GT(leaf.NotAfter(), absl::Now() + absl::Hours(23));
  const Certificate roots[] = {*Certificate::FromPem(joined->fleet_ca_pem())};
  EXPECT_TRUE(
      VerifyChain(leaf, std::span(*chain).subspan(1), roots, Usage::kClientAndServer, absl::Now())
          .ok());

  v1::GetEnrolledNodeRequest get;
  get.set_node("r1");
  const auto record = Enroll(&v1::EnrollmentService::Stub::GetEnrolledNode, get);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_TRUE(record->is_relay());
  EXPECT_EQ(record->uri(), UriOf("service/relay/r1"));
  EXPECT_EQ(List(record->relay_targets()), (Names{"10.0.0.9:7445", "r1.example:7445"}));
  EXPECT_EQ(List(record->join_targets()), (Names{"10.0.0.9:7446"}));

  // The response may have been lost: only the same key gets it again.
  EXPECT_EQ(Join(RelayJoin(token, machine))->certificate_chain_pem(),
            joined->certificate_chain_pem());
  EXPECT_EQ(ReasonOf(Join(RelayJoin(token, Machine())).status()), "TOKEN_USED");
}

TEST_F(RelayJoinTest, TokenOfTheOtherKindIsRefused) {
  const Token relay = CreateRelay("r1");
  EXPECT_EQ(ReasonOf(Join(relay, Machine()).status()), "TOKEN_OF_OTHER_KIND");
  const Token node = Create("n1");
  EXPECT_EQ(ReasonOf(Join(RelayJoin(node, Machine())).status()), "TOKEN_OF_OTHER_KIND");
  v1::JoinRequest other = RelayJoin(relay, Machine());
  const Machine machine;
  other = JoinRequestOf(relay, machine, "r2");
  other.add_relay_targets("10.0.0.9:7445");
  EXPECT_EQ(ReasonOf(Join(other).status()), "TOKEN_OF_OTHER_NODE");
  // A name has one kind: that of the first to join.
  const Token late_relay = CreateRelay("n1");
  const Token late_node = Create("r1");
  EXPECT_TRUE(Join(node, Machine()).ok()) << "none of it used a token up";
  EXPECT_TRUE(Join(RelayJoin(relay, Machine())).ok());
  EXPECT_EQ(ReasonOf(Join(RelayJoin(late_relay, Machine())).status()), "NODE_ENROLLED");
  EXPECT_EQ(ReasonOf(Join(late_node, Machine()).status()), "NODE_ENROLLED");
}

TEST_F(RelayJoinTest, RequestWithoutProofOrAddressIsRefused) {
  const Token token = CreateRelay("r1");
  const Machine machine;
  const struct {
    std::function<void(v1::JoinRequest*)> change;
    std::string reason;
  } cases[] = {
      {[](auto* r) { (*r->mutable_proof())[8] ^= 1; }, "TOKEN_REFUSED"},
      {[](auto* r) { r->set_csr_pem(Machine().csr); }, "TOKEN_REFUSED"},
      {[](auto* r) { r->set_csr_pem("nonsense"); }, "INVALID_CSR"},
      {[](auto* r) { r->clear_relay_targets(); }, "INVALID_TARGET"},
      {[](auto* r) { r->set_relay_targets(0, "nonsense"); }, "INVALID_TARGET"},
      {[](auto* r) { r->set_relay_targets(0, "host:0"); }, "INVALID_TARGET"},
      {[](auto* r) { r->set_relay_targets(0, "a\nb:1"); }, "INVALID_HOST"},
      {[](auto* r) { r->set_join_targets(0, "*.example:1"); }, "INVALID_HOST"},
      {[](auto* r) {
         for (int i = 0; i < 16; ++i) r->add_join_targets("h:1");
       },
       "INVALID_TARGET"},
  };
  for (const auto& c : cases) {
    v1::JoinRequest request = RelayJoin(token, machine);
    c.change(&request);
    EXPECT_EQ(ReasonOf(Join(request).status()), c.reason) << request.ShortDebugString();
  }
  EXPECT_TRUE(Join(RelayJoin(token, machine)).ok());
}

TEST_F(RelayJoinTest, InvalidTokensAreRefused) {
  Joined("r1", Machine());
  Joined("r2", Machine(), {"r1"});
  ASSERT_TRUE(Join(Create("n1"), Machine()).ok());
  const auto reason = [&](const std::string& relay, const Names& parents) {
    return ReasonOf(Ask(RelayRequest(NewToken(), relay, parents)).status());
  };
  EXPECT_EQ(reason("root", {}), "INVALID_TOKEN");
  EXPECT_EQ(reason("", {}), "INVALID_TOKEN");
  EXPECT_EQ(reason("r3", Names(9, "r1")), "INVALID_TOKEN");
  EXPECT_EQ(reason("r3", {"r9"}), "RELAY_NOT_FOUND");
  EXPECT_EQ(reason("r3", {"n1"}), "RELAY_NOT_FOUND");
  EXPECT_EQ(reason("r3", {"r1", "r2"}), "");
  EXPECT_EQ(reason("r1", {"r1"}), "RELAY_LOOP");
  EXPECT_EQ(reason("r1", {"r2"}), "RELAY_LOOP") << "a parent's own child";
  EXPECT_EQ(reason("n1", {}), "NAME_OF_OTHER_KIND");
  EXPECT_EQ(ReasonOf(Ask(Request(NewToken(), "r1", 0)).status()), "NAME_OF_OTHER_KIND");
  v1::CreateJoinTokenRequest several = RelayRequest(NewToken(), "", {});
  several.set_count(2);
  EXPECT_EQ(ReasonOf(Ask(several).status()), "INVALID_TOKEN");
}

TEST_F(RelayJoinTest, ResponseContainsTheAddressesOfTheParents) {
  Joined("r1", Machine());
  Joined("r2", Machine());
  v1::CreateJoinTokenRequest request = Request(NewToken(), "n1", 0);
  const Token token{request.id()};
  request.set_public_key_pem(*token.key.public_key().ToPem());
  request.add_parents("r2");
  request.add_parents("r1");
  const auto created = Ask(request);
  ASSERT_TRUE(created.ok()) << created.status();
  ASSERT_GE(created->join_targets_size(), 3);
  EXPECT_EQ(created->join_targets(0), "10.0.0.9:7446");
  EXPECT_EQ(List(created->token().parents()), (Names{"r2", "r1"}));
  const Machine machine;
  const auto joined = Join(token, machine);
  ASSERT_TRUE(joined.ok()) << joined.status();
  ASSERT_GE(joined->relay_targets_size(), 3);
  EXPECT_EQ(joined->relay_targets(0), "r2.example:7445");
  EXPECT_EQ(joined->relay_targets(1), "r1.example:7445");
  EXPECT_TRUE(joined->relay_targets(2).ends_with(":7445")) << "the one at the centre";
  EXPECT_EQ(joined->join_targets(0), "10.0.0.9:7446");
  // A revoked relay is no longer named.
  ASSERT_TRUE(Revoke("r2").ok());
  const auto back = Rejoin(joined->certificate_chain_pem(), machine.key, Machine());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->relay_targets(0), "r1.example:7445");
}

TEST_F(RelayJoinTest, MachinesJoinAndRenewThroughARelay) {
  const TestIdentity relay = Joined("r1", Machine());
  const Machine machine;
  const v1::JoinRequest join = JoinRequestOf(Create("n1"), machine, "");
  const auto joined = Relayed(relay, &v1::JoinService::Stub::Join, join);
  ASSERT_TRUE(joined.ok()) << joined.status();
  const Machine next;
  v1::RejoinRequest request;
  request.set_certificate_chain_pem(joined->certificate_chain_pem());
  request.set_csr_pem(next.csr);
  request.set_proof(*machine.key.Sign(ReturnProofText(next.csr)));
  const auto back = Relayed(relay, &v1::JoinService::Stub::Rejoin, request);
  ASSERT_TRUE(back.ok()) << back.status();
  // The relay cannot insert its own request.
  request.set_csr_pem(Machine().csr);
  EXPECT_EQ(ReasonOf(Relayed(relay, &v1::JoinService::Stub::Rejoin, request).status()),
            "RETURN_REFUSED");
  // This listener serves JoinService only to relays.
  for (const TestIdentity& other : {fleet_.admin(), IdentityOf(*back, next)}) {
    EXPECT_EQ(Relayed(other, &v1::JoinService::Stub::Join, join).status().code(),
              absl::StatusCode::kPermissionDenied);
  }
}

TEST_F(RelayJoinTest, RelayRenewsItsCertificate) {
  const Machine machine;
  const TestIdentity relay = Joined("r1", machine);
  const Machine next;
  const auto back = Rejoin(relay.chain_pem, machine.key, next);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->is_relay());
  const auto leaf = Certificate::FromPem(back->certificate_chain_pem());
  EXPECT_EQ(*leaf->Uri(), UriOf("service/relay/r1"));
  EXPECT_EQ(leaf->Hosts(), (Names{"r1.example", "10.0.0.9"}));
  EXPECT_LE(leaf->NotAfter(), absl::Now() + absl::Hours(24));
  const auto renewed = Renew(IdentityOf(*back, next), Machine());
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_LE(Certificate::FromPem(renewed->certificate_chain_pem())->NotAfter(),
            absl::Now() + absl::Hours(24));
  // The root relay is a service like the others.
  const TestIdentity root = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "root"});
  EXPECT_TRUE(Renew(root, Machine()).ok());
  EXPECT_EQ(
      ReasonOf(Rejoin(root.chain_pem, *PrivateKey::FromPem(root.key_pem), Machine()).status()),
      "NODE_NOT_ENROLLED");
  const TestIdentity stranger = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r9"});
  EXPECT_EQ(ReasonOf(Renew(stranger, Machine()).status()), "NODE_NOT_ENROLLED");
}

// The feed has the runs, nodes and results of the whole fleet, and not only those of a branch.
TEST_F(RelayJoinTest, OnlyTheRootRelayFollowsTheChangesOfTheFleet) {
  const TestIdentity relay = Joined("r1", Machine());
  const TestIdentity root = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "root"});
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  for (const std::string& pairs_of_run : {std::string(), run}) {
    EXPECT_EQ(ReasonOf(Follow(relay, pairs_of_run)), "NOT_YOURS");
    EXPECT_EQ(Follow(root, pairs_of_run), absl::OkStatus());
  }
}

TEST_F(RelayJoinTest, RevokedRelayIsRefusedEverywhere) {
  const Machine machine;
  const TestIdentity relay = Joined("r1", machine);
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  const auto statement = SignAttachStatement(*PrivateKey::FromPem(node.key_pem), node.chain_pem,
                                             UriOf("node/n1"), UriOf("service/relay/r1"),
                                             std::string(32, 'k'), absl::Now() + absl::Minutes(30));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  context.AddMetadata(kForwardedIdentity, UriOf("node/n1"));
  context.AddMetadata(kAttachStatement, statement->SerializeAsString());
  v1::WatchRunRequest watch;
  watch.set_run(fleet_.CreateRun({"hostfacts"}, {"n1"}).id());
  const auto stub = v1::RunService::NewStub(fleet_.Connect(relay));
  const auto stream = stub->WatchRun(&context, watch);
  v1::Run run;
  ASSERT_TRUE(stream->Read(&run));
  ASSERT_TRUE(Revoke("r1").ok());
  while (stream->Read(&run)) {
  }
  EXPECT_NE(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(Renew(relay, Machine()).ok());
  EXPECT_EQ(ReasonOf(Rejoin(relay.chain_pem, machine.key, Machine()).status()), "NODE_REVOKED");
  EXPECT_EQ(Relayed(relay, &v1::JoinService::Stub::Join, v1::JoinRequest()).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonOf(Ask(RelayRequest(NewToken(), "r1")).status()), "NODE_REVOKED");
}

}  // namespace
}  // namespace muster
