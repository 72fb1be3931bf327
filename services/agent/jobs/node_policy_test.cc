#include "services/agent/jobs/node_policy.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
constexpr char kFile[] = "/etc/policy.yaml";

CommandRequest Exec(std::vector<std::string> argv) {
  return {"exec", "alice", std::move(argv), {}, {}};
}

NodePolicy Policy(std::string_view yaml) {
  auto policy = NodePolicy::Parse(yaml, kFile);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.ok() ? *std::move(policy) : NodePolicy();
}

void ExpectRefused(const absl::Status& status, const std::string& because) {
  EXPECT_EQ(ReasonOf(status), "POLICY_REFUSED") << status;
  EXPECT_NE(status.message().find(because), absl::string_view::npos) << status;
}

TEST(NodePolicyTest, PolicyWithoutRulesAdmitsNothing) {
  ExpectRefused(Policy("").Allow(Exec({"/usr/bin/uptime"})).status(),
                "/etc/policy.yaml does not exist, or has no rule for commands, to admit "
                "\"/usr/bin/uptime\" (action exec, alice)");
  ExpectRefused(
      Policy("commands:\n  - argv: [/bin/true]\n").Allow(Exec({"/usr/bin/uptime"})).status(),
      "no rule in /etc/policy.yaml admits \"/usr/bin/uptime\" (action exec, alice)");
  EXPECT_TRUE(Policy("").AllowModule("hostfacts").ok());
}

TEST(NodePolicyTest, RuleAdmitsOnlyItsArgv) {
  const NodePolicy policy = Policy(
      "commands:\n"
      "  - argv: [/usr/bin/systemctl, restart, 'app-*']\n"
      "  - argv: [/usr/bin/journalctl, '**']\n");
  EXPECT_TRUE(policy.Allow(Exec({"/usr/bin/systemctl", "restart", "app-1"})).ok());
  EXPECT_TRUE(policy.Allow(Exec({"/usr/bin/journalctl"})).ok());
  EXPECT_TRUE(policy.Allow(Exec({"/usr/bin/journalctl", "-u", "x"})).ok());
  EXPECT_FALSE(policy.Allow(Exec({"/usr/bin/systemctl", "stop", "app-1"})).ok());
  EXPECT_FALSE(policy.Allow(Exec({"/usr/bin/systemctl", "restart"})).ok());
  EXPECT_FALSE(policy.Allow(Exec({"/usr/bin/systemctl", "restart", "app-1", "sshd"})).ok());
}

TEST(NodePolicyTest, ProgramMustBeAPlainAbsolutePath) {
  const NodePolicy policy = Policy("commands: [{argv: ['**']}]");
  EXPECT_TRUE(policy.Allow(Exec({"/bin/ls", "-l"})).ok());
  for (const char* program : {"ls", "./ls", "/bin/../tmp/x", "/bin//ls", "/", "", "/bin/."}) {
    ExpectRefused(policy.Allow(Exec({program})).status(), "not a plain absolute path");
  }
  ExpectRefused(policy.Allow(Exec({})).status(), "not a plain absolute path");
}

TEST(NodePolicyTest, FirstMatchingRuleApplies) {
  const NodePolicy policy = Policy(
      "commands:\n"
      "  - {argv: [/bin/ls], signers: [bob], user: backup}\n"
      "  - {argv: [/bin/ls], time_limit: 5m, max_output: 1MiB, directory: /srv}\n"
      "  - {argv: [/bin/ls], user: nobody}\n");
  const auto rule = policy.Allow(Exec({"/bin/ls"}));
  ASSERT_TRUE(rule.ok());
  EXPECT_EQ(rule->user, "");
  EXPECT_EQ(rule->directory, "/srv");
  EXPECT_EQ(rule->time_limit, absl::Minutes(5));
  EXPECT_EQ(rule->max_output, 1 << 20);
  CommandRequest bobs = Exec({"/bin/ls"});
  bobs.signer = "bob";
  EXPECT_EQ(policy.Allow(bobs)->user, "backup");
}

TEST(NodePolicyTest, RefusalShowsTheFirstLineOfAScript) {
  CommandRequest request{.action = "exec", .argv = {"/bin/sh", "-c", "set -e\nrm x\n", "last"}};
  const absl::Status refused = Policy("").Allow(request).status();
  ExpectRefused(refused, "to admit \"/bin/sh -c set -e ...\" (action exec");
  EXPECT_EQ(NextStepOf(refused).find("collect"), std::string::npos) << NextStepOf(refused);
  request.action = "collect";
  EXPECT_NE(NextStepOf(Policy("").Allow(request).status()).find("actions: [collect]"),
            std::string::npos);
}

CommandRequest InContainer(const std::string& image, std::vector<std::string> argv,
                           const std::string& action = "container") {
  return {action, "alice", std::move(argv), image, {}, {}};
}

TEST(NodePolicyTest, ContainerRunsOnlyWithAnAdmittedImage) {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  const NodePolicy policy = Policy(
      "commands: [{argv: [\"**\"]}]\n"
      "containers:\n"
      "  - images: [\"registry.example/tools/*@sha256:*\"]\n"
      "    argv: [check, \"**\"]\n"
      "    memory: 64MiB\n"
      "    cpus: 0.5\n"
      "    processes: 20\n"
      "    max_files: 10MiB\n"
      "    network: jobs\n"
      "    user: \"1000:1000\"\n"
      "    environment: [LANG]\n"
      "    time_limit: 5m\n"
      "  - images: [\"busybox@sha256:*\"]\n"
      "    signers: [alice]\n");
  CommandRequest request = InContainer("registry.example/tools/a" + digest, {"check", "--all"});
  request.variables = {"LANG"};
  const auto rule = policy.Allow(request);
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->argv, request.argv);
  EXPECT_EQ(rule->user, "1000:1000");
  EXPECT_EQ(rule->container.memory, int64_t{64} << 20);
  EXPECT_EQ(rule->container.nano_cpus, 500'000'000);
  EXPECT_EQ(rule->container.processes, 20);
  EXPECT_EQ(rule->container.max_files, int64_t{10} << 20);
  EXPECT_EQ(rule->container.network, "jobs");
  EXPECT_EQ(rule->time_limit, absl::Minutes(5));
  request.variables = {"PATH"};
  ExpectRefused(policy.Allow(request).status(), "PATH");
  ExpectRefused(policy.Allow(InContainer("registry.example/tools/a" + digest, {"sh"})).status(),
                "no rule for containers in /etc/policy.yaml admits \"sh\" in the image "
                "registry.example/tools/a@sha256:aaa");
  ExpectRefused(policy.Allow(InContainer("evil.example/tools/a" + digest, {"check"})).status(),
                "evil.example");
  const auto plain = policy.Allow(InContainer("busybox" + digest, {}));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->user, "65532:65532");
  EXPECT_EQ(plain->container.network, "none");
  request = InContainer("busybox" + digest, {});
  request.signer = "bob";
  ExpectRefused(policy.Allow(request).status(), "bob");
  EXPECT_TRUE(policy.Allow(Exec({"/bin/true"})).ok());
}

TEST(NodePolicyTest, RefusalOfAContainerNamesTheLineThatAdmitsIt) {
  const std::string image = "registry.example/types/greet@sha256:" + std::string(64, 'a');
  const auto refusal = [&](const std::string& containers,
                           const std::vector<std::string>& argv = {}) {
    const CommandRequest request = InContainer(image, argv, "deployment");
    return std::string(Policy(containers).Allow(request).status().message());
  };
  const std::string line =
      "- {images: [\"registry.example/types/greet@sha256:*\"], actions: [deployment]}";
  EXPECT_EQ(refusal(""),
            "/etc/policy.yaml does not exist, or has no rule for containers, to admit the image " +
                image + " (action deployment, alice); missing below containers: " + line);
  EXPECT_THAT(refusal("containers: [{images: [\"other@*\"]}]"),
              HasSubstr("no rule for containers in /etc/policy.yaml admits the image"));
  EXPECT_TRUE(Policy("containers:\n  " + line).Allow(InContainer(image, {}, "deployment")).ok());
  EXPECT_THAT(
      refusal("containers: [{images: [\"x\"]}, {images: [\"*/types/*\"]}]"),
      EndsWith("set in the rule with the image \"*/types/*\": actions: [container, deployment]"));
  EXPECT_THAT(refusal("containers: [{images: [\"*\"], actions: [deployment], signers: [bob]}]"),
              EndsWith("set in the rule with the image \"*\": signers: [bob, alice]"));
}

// A rule with `argv: ["**"]` would admit every command.
TEST(NodePolicyTest, RefusalOfAContainerNamesARuleForThisCommandOnly) {
  const std::string image = "registry.example/tools@sha256:" + std::string(64, 'a');
  const auto line_for = [&](const std::string& containers, const std::vector<std::string>& argv) {
    const std::string message(
        Policy(containers).Allow(InContainer(image, argv, "container")).status().message());
    const std::string place = "missing below containers: ";
    const size_t found = message.find(place);
    EXPECT_NE(found, std::string::npos) << message;
    return message.substr(found + place.size());
  };
  const std::string other = "containers: [{images: [\"*\"], actions: [container], argv: [a]}]";
  EXPECT_EQ(
      line_for(other, {"b"}),
      "- {images: [\"registry.example/tools@sha256:*\"], actions: [container], argv: [\"b\"]}");
  for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{
           {}, {"b"}, {"sh", "-c", "a \"b\"\n* \\ 'c' # {d}"}, {"b", "**"}, {"*"}}) {
    for (const std::string& containers : {std::string(), other}) {
      const NodePolicy policy = Policy("containers:\n  " + line_for(containers, argv) + "\n");
      EXPECT_TRUE(policy.Allow(InContainer(image, argv, "container")).ok());
      EXPECT_FALSE(policy.Allow(InContainer(image, {"b", "x"}, "container")).ok());
      EXPECT_FALSE(policy.Allow(InContainer(image, {"x"}, "container")).ok());
    }
  }
  EXPECT_THAT(line_for(other, {"b", std::string(1000, 'x')}),
              EndsWith("argv: [the program and its arguments]}"));
}

// Rules for commands on the node admit no container, and the other way round.
TEST(NodePolicyTest, RuleAdmitsOnlyItsKind) {
  const std::string image = "sha256:" + std::string(64, 'a');
  ExpectRefused(Policy("commands: [{argv: [\"**\"]}]").Allow(InContainer(image, {"x"})).status(),
                "has no rule for containers");
  const NodePolicy policy = Policy("containers: [{images: [\"*\"]}]");
  EXPECT_TRUE(policy.Allow(InContainer(image, {"x"})).ok());
  const NodePolicy of_image = Policy("containers: [{images: [\"*\"], argv: []}]");
  EXPECT_TRUE(of_image.Allow(InContainer(image, {})).ok());
  ExpectRefused(of_image.Allow(InContainer(image, {"x"})).status(), "\"x\"");
  ExpectRefused(policy.Allow(Exec({"/bin/true"})).status(), "has no rule for commands");
}

TEST(NodePolicyTest, DeploymentRequiresARuleWithItsAction) {
  const std::string image = "sha256:" + std::string(64, 'a');
  const CommandRequest deployment = InContainer(image, {}, "deployment");
  ExpectRefused(Policy("containers: [{images: ['*']}]").Allow(deployment).status(),
                "(action deployment, alice)");
  EXPECT_TRUE(Policy("containers: [{images: ['*'], actions: [container, deployment]}]")
                  .Allow(deployment)
                  .ok());
  // The first rule that fits applies.
  const NodePolicy policy = Policy(
      "containers:\n"
      "  - {images: ['*'], memory: 1GiB}\n"
      "  - {images: ['*'], memory: 64MiB, actions: [deployment]}\n");
  EXPECT_EQ(policy.Allow(deployment)->container.memory, int64_t{64} << 20);
  EXPECT_EQ(policy.Allow(InContainer(image, {}))->container.memory, int64_t{1} << 30);
  ExpectRefused(Policy("containers: [{images: ['*'], actions: [deployment]}]")
                    .Allow(InContainer(image, {}))
                    .status(),
                "(action container, alice)");
}

TEST(NodePolicyTest, DeploymentHasOnlyTheSecretsOfItsRule) {
  CommandRequest deployment = InContainer("sha256:" + std::string(64, 'a'), {}, "deployment");
  deployment.secrets = {"prod/db", "shared"};
  const absl::Status refused =
      Policy("containers: [{images: ['*'], actions: [deployment]}]").Allow(deployment).status();
  ExpectRefused(refused, "does not admit the secret prod/db, the secret shared");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("secrets: [\"prod/db\", \"shared\"]"));
  ExpectRefused(Policy("containers: [{images: ['*'], actions: [deployment], secrets: ['prod/*']}]")
                    .Allow(deployment)
                    .status(),
                "does not admit the secret shared");
  EXPECT_TRUE(
      Policy("containers: [{images: ['*'], actions: [deployment], secrets: ['prod/*', shared]}]")
          .Allow(deployment)
          .ok());
}

TEST(NodePolicyTest, DeploymentHasOnlyAWorkspaceOfItsRule) {
  CommandRequest deployment = InContainer("sha256:" + std::string(64, 'a'), {}, "deployment");
  deployment.workspace = "net-1";
  const absl::Status refused =
      Policy("containers: [{images: ['*'], actions: [deployment]}]").Allow(deployment).status();
  ExpectRefused(refused, "does not admit the workspace net-1");
  EXPECT_NE(refused.message().find("workspaces: [\"net-1\"]"), absl::string_view::npos) << refused;
  ExpectRefused(Policy("containers: [{images: ['*'], actions: [deployment], workspaces: ['w*']}]")
                    .Allow(deployment)
                    .status(),
                "does not admit the workspace net-1");
  EXPECT_TRUE(Policy("containers: [{images: ['*'], actions: [deployment], workspaces: ['net-*']}]")
                  .Allow(deployment)
                  .ok());
}

TEST(NodePolicyTest, BuildRequiresARuleWithItsRepository) {
  const std::string image = "registry.example/types/site@sha256:" + std::string(64, 'a');
  CommandRequest build = InContainer(image, {}, "build");
  build.repository = "registry.example/templates/web";
  EXPECT_THAT(
      std::string(Policy("").Allow(build).status().message()),
      HasSubstr("the image " + image +
                " for registry.example/templates/web (action build, alice); "
                "missing below containers: - {images: [\"registry.example/types/site@sha256:*\"], "
                "actions: [build], repositories: [\"registry.example/templates/web\"]}"));
  EXPECT_THAT(std::string(Policy("containers: [{images: ['*']}]").Allow(build).status().message()),
              HasSubstr("actions: [container, build], repositories: "
                        "[\"registry.example/templates/web\"]"));
  const auto with = [](const std::string& repository) {
    return Policy("containers: [{images: ['*'], argv: [], actions: [build], repositories: ['" +
                  repository + "']}]");
  };
  EXPECT_THAT(std::string(with("registry.example/other").Allow(build).status().message()),
              HasSubstr("repositories: [\"registry.example/other\", "
                        "\"registry.example/templates/web\"]"));
  EXPECT_TRUE(with("registry.example/templates/*").Allow(build).ok());
  ExpectRefused(with("*").Allow(InContainer(image, {})).status(), "action container");
}

TEST(NodePolicyTest, RuleWithSignersAdmitsNoUnsignedCollection) {
  const NodePolicy policy = Policy(
      "commands:\n"
      "  - {argv: [/bin/ls], signers: [alice], actions: [exec, collect]}\n"
      "  - {argv: [/bin/df], actions: [collect]}\n");
  EXPECT_FALSE(policy.Allow({"collect", "", {"/bin/ls"}, {}, {}}).ok());
  EXPECT_TRUE(policy.Allow({"exec", "alice", {"/bin/ls"}, {}, {}}).ok());
  EXPECT_TRUE(policy.Allow({"collect", "", {"/bin/df"}, {}, {}}).ok());
}

TEST(NodePolicyTest, ActionsAndVariablesMustBeListed) {
  const NodePolicy policy = Policy(
      "commands:\n"
      "  - {argv: [/opt/rudder/bin/rudder, '**'], actions: [rudder], signers: [gateway/g1]}\n"
      "  - {argv: [/bin/env], environment: [LANG]}\n");
  CommandRequest request{"rudder", "gateway/g1", {"/opt/rudder/bin/rudder"}, {}, {}};
  EXPECT_TRUE(policy.Allow(request).ok());
  request.signer = "gateway/g2";
  EXPECT_FALSE(policy.Allow(request).ok());
  EXPECT_FALSE(policy.Allow(Exec({"/opt/rudder/bin/rudder"})).ok());
  CommandRequest env = Exec({"/bin/env"});
  env.variables = {"LANG"};
  EXPECT_TRUE(policy.Allow(env).ok());
  env.variables = {"LANG", "LD_PRELOAD"};
  ExpectRefused(policy.Allow(env).status(), "does not admit the variable LD_PRELOAD");
}

TEST(NodePolicyTest, RudderRunWithoutArgvUsesTheRuleOfTheNode) {
  const NodePolicy policy = Policy(
      "commands:\n"
      "  - {argv: ['**'], actions: [rudder]}\n"
      "  - {argv: [/opt/rudder/bin/rudder, agent, run], actions: [rudder], classes: ['app_*']}\n");
  CommandRequest request{"rudder", "gateway/g1", {}, {}, {}};
  const std::vector<std::string> run = {"/opt/rudder/bin/rudder", "agent", "run"};
  EXPECT_EQ(policy.Allow(request)->argv, run);
  request.classes = {"app_1", "app_2"};
  std::vector<std::string> with_classes = run;
  with_classes.insert(with_classes.end(), {"-D", "app_1,app_2"});
  EXPECT_EQ(policy.Allow(request)->argv, with_classes);
  request.classes = {"app_1", "other"};
  ExpectRefused(policy.Allow(request).status(), "does not admit the class other");
  request.action = "exec";
  ExpectRefused(policy.Allow(request).status(), "not a plain absolute path");
}

TEST(NodePolicyTest, OnlyListedModulesMayCollect) {
  const NodePolicy policy = Policy("collect: [hostfacts]");
  EXPECT_TRUE(policy.AllowModule("hostfacts").ok());
  ExpectRefused(policy.AllowModule("systemd-logs"), "does not name module systemd-logs");
  ExpectRefused(Policy("collect: []").AllowModule("hostfacts"), "hostfacts");
}

}  // namespace
}  // namespace muster
