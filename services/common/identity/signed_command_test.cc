#include "services/common/identity/signed_command.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/command_authority.h"
#include "services/common/identity/target_set.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

class SignedCommandTest : public ::testing::Test {
 protected:
  v1::Command Command() {
    v1::Command command;
    command.set_fleet(kFleet);
    command.set_job("0123456789abcdef0123456789abcdef");
    command.mutable_targets()->set_nodes_sha256(targets_.root());
    command.mutable_targets()->set_count(static_cast<int64_t>(targets_.size()));
    command.set_action("exec");
    command.add_argv("/bin/true");
    command.mutable_not_before()->set_seconds(absl::ToUnixSeconds(now_));
    command.mutable_not_after()->set_seconds(absl::ToUnixSeconds(now_) + 60);
    command.mutable_time_limit()->set_seconds(60);
    command.set_nonce(std::string(16, 'n'));
    return command;
  }

  std::string CertificateOf(const FleetName& name) {
    return authority_.Issue(name, key_.public_key(), now_)->ToPem();
  }

  // Signs any content as an operator.
  v1::SignedCommand SignAnyhow(const v1::Command& command,
                               const FleetName& name = UserIdentity{"o"}) {
    v1::SignedCommand result;
    result.set_command(command.SerializeAsString());
    result.set_signature(*key_.Sign("muster-command-v1\n" + result.command()));
    result.set_certificate_chain_pem(CertificateOf(name));
    return result;
  }

  absl::StatusOr<VerifiedCommand> Verify(const v1::SignedCommand& command) {
    return VerifyCommand(command, authority_.certificate(), kFleet, now_);
  }

  std::string Refusal(const v1::SignedCommand& command) {
    return ReasonOf(Verify(command).status());
  }

  // Returns the outcome of signer and verifier, which must be equal.
  std::string Judged(const v1::Command& command) {
    const std::string reason = Refusal(SignAnyhow(command));
    EXPECT_EQ(ReasonOf(SignCommand(command, key_, "").status()), reason);
    return reason;
  }

  const absl::Time now_ = absl::Now();
  const CommandAuthority authority_ =
      *CommandAuthority::Create(kFleet, *PrivateKey::Generate(), now_);
  const SigningKey key_ = *SigningKey::Generate();
  const TargetSet targets_{{"n1", "n2", "n3"}};
};

TEST_F(SignedCommandTest, CommandOfOperatorIsAccepted) {
  const auto signed_command = SignCommand(Command(), key_, CertificateOf(UserIdentity{"o"}));
  ASSERT_TRUE(signed_command.ok()) << signed_command.status();
  const auto verified = Verify(*signed_command);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->command.argv(0), "/bin/true");
  EXPECT_EQ(verified->signer, (Identity{kFleet, UserIdentity{"o"}}));
  EXPECT_FALSE(verified->serial.empty());
}

TEST_F(SignedCommandTest, ChangedByteIsRefused) {
  const v1::SignedCommand good = SignAnyhow(Command());
  for (size_t i = 0; i < good.command().size(); ++i) {
    v1::SignedCommand changed = good;
    (*changed.mutable_command())[i] ^= 1;
    EXPECT_EQ(Refusal(changed), "COMMAND_REFUSED") << "byte " << i;
  }
  v1::SignedCommand changed = good;
  changed.mutable_signature()->front() ^= 1;
  EXPECT_EQ(Refusal(changed), "COMMAND_REFUSED");
}

TEST_F(SignedCommandTest, UnsignedCommandIsRefused) {
  v1::SignedCommand command = SignAnyhow(Command());
  command.clear_signature();
  EXPECT_EQ(Refusal(command), "COMMAND_REFUSED");
  command = SignAnyhow(Command());
  command.clear_certificate_chain_pem();
  EXPECT_EQ(Refusal(command), "COMMAND_REFUSED");
}

TEST_F(SignedCommandTest, SignatureWithAnotherKeyIsRefused) {
  v1::SignedCommand command = SignAnyhow(Command());
  command.set_signature(*SigningKey::Generate()->Sign("muster-command-v1\n" + command.command()));
  EXPECT_EQ(Refusal(command), "COMMAND_REFUSED");
}

TEST_F(SignedCommandTest, CertificateOfAnotherAuthorityIsRefused) {
  const CommandAuthority other = *CommandAuthority::Create(kFleet, *PrivateKey::Generate(), now_);
  EXPECT_EQ(
      ReasonOf(VerifyCommand(SignAnyhow(Command()), other.certificate(), kFleet, now_).status()),
      "COMMAND_REFUSED");
}

TEST_F(SignedCommandTest, TlsCertificateOfOperatorIsRefused) {
  // A certificate that chains to the fleet's root, which is not a command authority.
  const FleetRoot root = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const PrivateKey intermediate_key = *PrivateKey::Generate();
  const Intermediate intermediate = *Intermediate::Load(
      kFleet, intermediate_key, *root.SignIntermediate(intermediate_key.public_key(), now_),
      root.certificate());
  const PrivateKey key = *PrivateKey::Generate();
  v1::SignedCommand command = SignAnyhow(Command());
  command.set_signature(*key.Sign("muster-command-v1\n" + command.command()));
  command.set_certificate_chain_pem(ChainToPem(std::vector<Certificate>{
      *intermediate.Issue(UserIdentity{"o"}, key.public_key(), {}, now_, now_ + absl::Hours(1)),
      intermediate.certificate()}));
  EXPECT_EQ(Refusal(command), "COMMAND_REFUSED");
  // The wrong pinned certificate does not help: its key is not Ed25519.
  EXPECT_EQ(ReasonOf(VerifyCommand(command, root.certificate(), kFleet, now_).status()),
            "COMMAND_REFUSED");
}

TEST_F(SignedCommandTest, ExpiredCertificateIsRefused) {
  v1::Command command = Command();
  command.mutable_not_after()->set_seconds(absl::ToUnixSeconds(now_ + absl::Hours(48)));
  const auto verified =
      VerifyCommand(SignAnyhow(command), authority_.certificate(), kFleet, now_ + absl::Hours(25));
  EXPECT_EQ(ReasonOf(verified.status()), "COMMAND_REFUSED");
}

TEST_F(SignedCommandTest, CommandOutsideItsTimesIsRefused) {
  v1::Command command = Command();
  command.mutable_not_before()->set_seconds(absl::ToUnixSeconds(now_) + 299);
  command.mutable_not_after()->set_seconds(absl::ToUnixSeconds(now_) + 400);
  EXPECT_EQ(Refusal(SignAnyhow(command)), "") << "clocks may differ by 5 minutes";
  command.mutable_not_before()->set_seconds(absl::ToUnixSeconds(now_) + 310);
  EXPECT_EQ(Refusal(SignAnyhow(command)), "COMMAND_EARLY");
  command.mutable_not_before()->set_seconds(absl::ToUnixSeconds(now_) - 900);
  command.mutable_not_after()->set_seconds(absl::ToUnixSeconds(now_) - 290);
  EXPECT_EQ(Refusal(SignAnyhow(command)), "") << "clocks may differ by 5 minutes";
  command.mutable_not_after()->set_seconds(absl::ToUnixSeconds(now_) - 310);
  EXPECT_EQ(Refusal(SignAnyhow(command)), "COMMAND_EXPIRED");
}

TEST_F(SignedCommandTest, CommandOfAnotherFleetIsRefused) {
  v1::Command command = Command();
  command.set_fleet("another.muster");
  EXPECT_EQ(Refusal(SignAnyhow(command)), "COMMAND_REFUSED");
}

TEST_F(SignedCommandTest, GatewayMaySignOnlyTheRudderAction) {
  const FleetName gateway = ServiceIdentity{ServiceRole::kGateway, "g"};
  v1::Command command = Command();
  EXPECT_EQ(Refusal(SignAnyhow(command, gateway)), "COMMAND_REFUSED");
  command.set_action("rudder");
  EXPECT_EQ(Refusal(SignAnyhow(command, gateway)), "");
}

TEST_F(SignedCommandTest, NodeAcceptsOnlyCommandsThatTargetIt) {
  v1::JobCommand::Target target;
  target.set_node("n2");
  target.set_index(1);
  for (const std::string& sibling : targets_.Proof(1)) target.add_proof(sibling);
  EXPECT_TRUE(CheckTarget(Command(), "n2", target).ok());
  EXPECT_EQ(ReasonOf(CheckTarget(Command(), "n3", target)), "COMMAND_REFUSED");
  target.set_node("n4");
  EXPECT_EQ(ReasonOf(CheckTarget(Command(), "n4", target)), "COMMAND_REFUSED");
  target.set_node("n2");
  target.set_index(0);
  EXPECT_EQ(ReasonOf(CheckTarget(Command(), "n2", target)), "COMMAND_REFUSED");
}

TEST_F(SignedCommandTest, CommandForAllNeedsNoProof) {
  v1::Command command = Command();
  command.mutable_targets()->Clear();
  command.mutable_targets()->set_all(true);
  EXPECT_EQ(Judged(command), "");
  v1::JobCommand::Target target;
  target.set_node("n9");
  EXPECT_TRUE(CheckTarget(command, "n9", target).ok());
  EXPECT_EQ(ReasonOf(CheckTarget(command, "n8", target)), "COMMAND_REFUSED");
}

TEST_F(SignedCommandTest, CommandBeyondTheLimitsIsNeitherSignedNorAccepted) {
  const auto changed = [&](auto change) {
    v1::Command command = Command();
    change(command);
    return Judged(command);
  };
  EXPECT_EQ(changed([](auto& c) {}), "");
  const std::string invalid = "INVALID_COMMAND";
  EXPECT_EQ(changed([](auto& c) { c.set_job("0123"); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.set_job("0123456789ABCDEF0123456789ABCDEF"); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.clear_targets(); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.mutable_targets()->set_all(true); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.mutable_targets()->set_count(50'001); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.mutable_targets()->set_count(0); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.set_action("reboot"); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.clear_argv(); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.set_argv(0, ""); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.add_argv(std::string("a\0b", 3)); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.add_argv(std::string(64 << 10, 'a')); }), invalid);
  EXPECT_EQ(changed([](auto& c) {
              for (int i = 0; i < 1000; ++i) c.add_argv("a");
            }),
            invalid);
  EXPECT_EQ(changed([](auto& c) { c.set_nonce("short"); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.clear_not_before(); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.mutable_not_after()->set_seconds(1); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.clear_time_limit(); }), invalid);
  EXPECT_EQ(changed([](auto& c) { c.mutable_time_limit()->set_seconds(-1); }), invalid);
}

TEST_F(SignedCommandTest, InvalidVariableAndClassNamesAreRefused) {
  const auto variable = [&](const std::string& name, const std::string& value = "") {
    v1::Command command = Command();
    for (const std::string& each : {name, std::string("b")}) {
      auto* added = command.add_environment();
      added->set_name(each);
      added->set_value(value);
    }
    return Judged(command);
  };
  EXPECT_EQ(variable("_a"), "");
  for (const std::string& name : {std::string(), std::string("1a"), std::string("a-b"),
                                  std::string("c"), std::string("b"), std::string(129, 'a')}) {
    EXPECT_EQ(variable(name), "INVALID_COMMAND") << name;
  }
  EXPECT_EQ(variable("a", std::string("\0", 1)), "INVALID_COMMAND");
  const auto with_class = [&](const std::string& name) {
    v1::Command command = Command();
    command.add_classes(name);
    return Judged(command);
  };
  EXPECT_EQ(with_class("1_a"), "");
  for (const std::string& name :
       {std::string(), std::string("_a"), std::string("a b"), std::string(1025, 'a')}) {
    EXPECT_EQ(with_class(name), "INVALID_COMMAND") << name;
  }
}

// An agent that knows no containers must not run the command on its node.
TEST_F(SignedCommandTest, ContainerRequiresItsOwnActionAndAnImageByContent) {
  const std::string image = "registry.example/a@sha256:" + std::string(64, 'a');
  const auto judged = [&](const std::string& action, const std::string& name, bool argv = true) {
    v1::Command command = Command();
    command.set_action(action);
    if (!argv) command.clear_argv();
    if (!name.empty()) command.mutable_container()->set_image(name);
    return Judged(command);
  };
  EXPECT_EQ(judged("container", image), "");
  EXPECT_EQ(judged("container", image, /*argv=*/false), "");
  EXPECT_EQ(judged("exec", image), "INVALID_COMMAND");
  EXPECT_EQ(judged("container", ""), "INVALID_COMMAND");
  EXPECT_EQ(judged("container", "registry.example/a:latest"), "INVALID_COMMAND");
  EXPECT_EQ(judged("container", "../a@sha256:" + std::string(64, 'a')), "INVALID_COMMAND");
}

// The container of an agent that knows no deployments would lack its parameters.
TEST_F(SignedCommandTest, DeploymentRequiresItsOwnActionAndItsFields) {
  const auto judged = [&](auto change) {
    v1::Command command = Command();
    command.set_action("deployment");
    command.clear_argv();
    command.mutable_container()->set_image("a@sha256:" + std::string(64, 'a'));
    v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
    deployment.set_deployment(std::string(32, 'd'));
    deployment.set_action("deploy");
    deployment.set_type_document("{}");
    change(command, deployment);
    return Judged(command);
  };
  const std::string invalid = "INVALID_COMMAND";
  EXPECT_EQ(judged([](auto& c, auto& d) {}), "");
  EXPECT_EQ(judged([](auto& c, auto& d) {
              d.set_action(std::string(253, 'a'));
              d.set_type_document(std::string(24 << 10, 'x'));
              d.set_template_document(std::string(24 << 10, 'x'));
              d.set_parameters(std::string(32 << 10, 'x'));
            }),
            "");
  EXPECT_EQ(judged([](auto& c, auto& d) { c.set_action("container"); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { c.mutable_container()->clear_deployment(); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { c.clear_container(); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { c.mutable_container()->clear_image(); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { c.add_argv("sh"); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { c.add_environment()->set_name("A"); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { c.add_classes("a"); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { d.set_deployment("D1"); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { d.clear_action(); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { d.set_action(std::string(254, 'a')); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { d.clear_type_document(); }), invalid);
  const std::string large((24 << 10) + 1, 'x');
  EXPECT_EQ(judged([&](auto& c, auto& d) { d.set_type_document(large); }), invalid);
  EXPECT_EQ(judged([&](auto& c, auto& d) { d.set_template_document(large); }), invalid);
  EXPECT_EQ(judged([](auto& c, auto& d) { d.set_parameters(std::string((32 << 10) + 1, 'x')); }),
            invalid);
}

// An agent that knows no builds would run the image.
TEST_F(SignedCommandTest, BuildRequiresItsOwnActionAndOneNode) {
  const auto judged = [&](auto change) {
    v1::Command command = Command();
    command.set_action("build");
    command.clear_argv();
    command.mutable_targets()->set_count(1);
    command.mutable_container()->set_image("a@sha256:" + std::string(64, 'a'));
    command.mutable_container()->mutable_build()->set_build(std::string(32, 'd'));
    change(command);
    return ReasonOf(CheckCommand(command));
  };
  const std::string invalid = "INVALID_COMMAND";
  EXPECT_EQ(judged([](auto&) {}), "");
  EXPECT_EQ(judged([](auto& c) { c.set_action("container"); }), invalid);
  EXPECT_EQ(judged([](auto& c) { c.set_action("deployment"); }), invalid);
  EXPECT_EQ(judged([](auto& c) { c.mutable_container()->clear_build(); }), invalid);
  EXPECT_EQ(judged([](auto& c) { c.mutable_container()->mutable_deployment(); }), invalid);
  EXPECT_EQ(judged([](auto& c) { c.mutable_container()->clear_image(); }), invalid);
  EXPECT_EQ(judged([](auto& c) { c.mutable_container()->mutable_build()->set_build("D"); }),
            invalid);
  EXPECT_EQ(judged([](auto& c) { c.add_argv("sh"); }), invalid);
  EXPECT_EQ(judged([](auto& c) { c.mutable_targets()->set_count(2); }), invalid);
  EXPECT_EQ(judged([](auto& c) {
              c.mutable_targets()->Clear();
              c.mutable_targets()->set_all(true);
            }),
            invalid);
}

TEST_F(SignedCommandTest, TooLargeCommandIsRefused) {
  v1::Command large = Command();
  for (int i = 0; i < 140; ++i) large.add_classes(std::string(1000, 'a'));
  EXPECT_EQ(Judged(large), "INVALID_COMMAND");
  v1::SignedCommand command = SignAnyhow(Command());
  command.mutable_certificate_chain_pem()->append(17 << 10, '\n');
  EXPECT_EQ(Refusal(command), "INVALID_COMMAND");
  command = SignAnyhow(Command());
  command.set_command("\xff\xff");
  command.set_signature(*key_.Sign("muster-command-v1\n" + command.command()));
  EXPECT_EQ(Refusal(command), "INVALID_COMMAND");
}

}  // namespace
}  // namespace muster
