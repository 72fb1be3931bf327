// The signature of a deployment's command.
#include <grpcpp/grpcpp.h>

#include <string>
#include <variant>

#include "gtest/gtest.h"
#include "muster/v1/deployments.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/random_id.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/command_authority.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"
#include "services/common/identity/signed_command.h"
#include "services/common/identity/signing_key.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_call.h"

namespace muster {
namespace {

class DeploymentSignatureTest : public testing::JobsFixture {};

TEST_F(DeploymentSignatureTest, WhatTheRelayWouldRefuseIsRefusedAtOnce) {
  const auto request = Request({"n1"});
  const auto refusal = [&](void (*change)(v1::CreateDeploymentRequest&)) {
    v1::CreateDeploymentRequest changed = request;
    change(changed);
    return ReasonOf(Create(changed).status());
  };
  using Changed = v1::CreateDeploymentRequest;
  EXPECT_EQ(refusal([](Changed& r) { r.mutable_command()->mutable_signature()->back() ^= 1; }),
            "COMMAND_REFUSED");
  EXPECT_EQ(refusal([](Changed& r) { r.clear_nodes(); }), "INVALID_COMMAND");
  EXPECT_EQ(refusal([](Changed& r) { r.add_nodes("n2"); }), "INVALID_COMMAND");
  EXPECT_EQ(refusal([](Changed& r) { r.set_parallel(-1); }), "INVALID_COMMAND");
  EXPECT_EQ(refusal([](Changed& r) { r.mutable_wait()->set_seconds(-1); }), "INVALID_COMMAND");
  EXPECT_EQ(refusal([](Changed&) {}), "");
}

TEST_F(DeploymentSignatureTest, CommandOfAnotherSignerIsRefused) {
  const auto created = CreateAs(fleet_.Issue(UserIdentity{"mallory"}), Request({"n1"}));
  EXPECT_EQ(ReasonOf(created.status()), "COMMAND_REFUSED");
}

// A gateway names any operator as the caller. While the relay is down, an open deployment gets
// secrets and workspaces.
TEST_F(DeploymentSignatureTest, CommandOfAGatewayThatSignsAsAnOperatorIsRefused) {
  auto request = Request({"n1"});
  const std::string tester = *Certificate::FromPem(fleet_.admin().chain_pem)->Uri();
  const Identity identity = *ParseIdentity(tester, fleet_.name());
  const SigningKey key = SigningKey::Generate().value();
  const auto authority =
      CommandAuthority::Create(fleet_.name(), PrivateKey::Generate().value(), absl::Now());
  const auto forged =
      authority->Issue(std::get<UserIdentity>(identity.name), key.public_key(), absl::Now());
  ASSERT_TRUE(forged.ok()) << forged.status();
  *request.mutable_command() = SignCommand(CommandOf(request), key, forged->ToPem()).value();
  relay_.Stop();
  const auto gateway = Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g1"}));
  absl::StatusOr<v1::Deployment> created;
  ASSERT_TRUE(testing::Await([&] {
    created = testing::CallUnary<v1::DeploymentService>(
        gateway, &v1::DeploymentService::Stub::CreateDeployment, request,
        {{kForwardedIdentity, tester}});
    return ReasonOf(created.status()) != "NO_COMMAND_AUTHORITY";
  }));
  EXPECT_EQ(ReasonOf(created.status()), "COMMAND_REFUSED") << created.status();
}

// It may have been stored long before the answer arrived.
TEST_F(DeploymentSignatureTest, RepeatedCallAfterTheTimeOfItsCommandReturnsTheStoredDeployment) {
  v1::Command command = CommandOf(Request({"n1"}));
  ToProto(absl::Now() + absl::Seconds(1) - kCommandClockSlack, command.mutable_not_after());
  ToProto(absl::Now() - absl::Hours(1), command.mutable_not_before());
  const auto request = SignedRequest(command, {"n1"});
  ASSERT_TRUE(Create(request).ok());
  ASSERT_TRUE(testing::Await([&] {
    command.set_job(RandomHex(16));
    command.mutable_container()->mutable_deployment()->set_deployment(RandomHex(16));
    return ReasonOf(Create(SignedRequest(command, {"n1"})).status()) == "COMMAND_EXPIRED";
  }));
  EXPECT_TRUE(Create(request).ok());
}

// Otherwise it would take a place for as long.
TEST_F(DeploymentSignatureTest, CommandForALaterDayIsRefused) {
  v1::Command command = CommandOf(Request({"n1"}));
  command.mutable_not_after()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(26)));
  EXPECT_EQ(ReasonOf(Create(SignedRequest(command, {"n1"})).status()), "INVALID_COMMAND");
}

}  // namespace
}  // namespace muster
