#include "services/agent/jobs/policy_hint.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/node_policy.h"
#include "yaml-cpp/yaml.h"

namespace muster {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kImage = "registry.example/types/site@sha256:" + std::string(64, 'a');

std::string Text(const YAML::Node& node) {
  std::ostringstream text;
  text << node;
  return text.str();
}

// Returns the refusal of a request by the policy with this one rule; empty if it is admitted.
std::string Refusal(const YAML::Node& policy, const CommandRequest& request) {
  const auto read = NodePolicy::Parse(Text(policy), "policy.yaml");
  EXPECT_TRUE(read.ok()) << read.status() << "\n" << policy;
  if (!read.ok()) return "";
  return std::string(read->Allow(request).status().message());
}

// Writes the lines of a refusal into the policy, as an operator does: each one replaces the line of
// its field in the first rule, or is a new rule. A line of a field that the rule has twice makes
// the policy unusable.
void Follow(const std::string& refusal, YAML::Node policy) {
  if (const size_t rule = refusal.find("missing below containers: - "); rule != std::string::npos) {
    policy["containers"].push_back(YAML::Load(refusal.substr(refusal.find('{', rule))));
    return;
  }
  const size_t set = refusal.find("set in the rule with the image \"*\": ");
  ASSERT_NE(set, std::string::npos) << refusal;
  const YAML::Node lines =
      YAML::Load(absl::StrCat("{", refusal.substr(refusal.find("\": ", set) + 3), "}"));
  for (const auto& line : lines) policy["containers"][0][line.first.Scalar()] = line.second;
}

CommandRequest Deployment() {
  return {.action = "deployment",
          .signer = "alice",
          .image = kImage,
          .variables = {"LANG"},
          .secrets = {"prod/db", "vault:prod/x#y"},
          .workspace = "net-1",
          .network = "jobs"};
}

TEST(PolicyHintTest, OneRoundAdmitsADeployment) {
  for (const char* rule :
       {"", "[]", "[{images: ['*']}]", "[{images: ['*'], actions: [deployment]}]",
        "[{images: ['*'], signers: [bob], secrets: ['a b*', 'prod/c'], workspaces: [v]}]",
        "[{images: ['*'], actions: [deployment], environment: [TZ], network: other}]",
        "[{images: ['*'], argv: [x], actions: [deployment]}]"}) {
    YAML::Node policy = YAML::Load(absl::StrCat("containers: ", rule));
    if (!policy["containers"].IsSequence()) policy = YAML::Load("{}");
    const std::string refusal = Refusal(policy, Deployment());
    ASSERT_NE(refusal, "") << rule;
    Follow(refusal, policy);
    EXPECT_EQ(Refusal(policy, Deployment()), "") << rule << "\nfollowed: " << policy;
  }
}

TEST(PolicyHintTest, OneRoundAdmitsABuild) {
  const CommandRequest build = {.action = "build",
                                .signer = "alice",
                                .image = kImage,
                                .repository = "registry.example/templates/web"};
  for (const char* rule :
       {"[]", "[{images: ['*']}]", "[{images: ['*'], actions: [build], repositories: [x]}]",
        "[{images: ['*'], signers: [bob], actions: [build], repositories: ['x/*']}]"}) {
    YAML::Node policy = YAML::Load(absl::StrCat("containers: ", rule));
    Follow(Refusal(policy, build), policy);
    EXPECT_EQ(Refusal(policy, build), "") << rule << "\nfollowed: " << policy;
  }
}

// A second line of the same field would make the policy unusable.
TEST(PolicyHintTest, LineKeepsWhatTheRuleAdmits) {
  CommandRequest request = Deployment();
  request.variables = {};
  request.network = "";
  EXPECT_THAT(
      Refusal(YAML::Load("containers: [{images: ['*'], actions: [deployment], workspaces: [v], "
                         "secrets: ['prod/*', \"a\"]}]"),
              request),
      EndsWith("the rule for the image in policy.yaml does not admit the workspace net-1, the "
               "secret vault:prod/x#y; set in the rule with the image \"*\": workspaces: "
               "[\"v\", \"net-1\"], secrets: [\"prod/*\", \"a\", \"vault:prod/x#y\"]"));
}

TEST(PolicyHintTest, NewRuleAdmitsOnlyTheRequest) {
  YAML::Node policy = YAML::Load("containers: []");
  Follow(Refusal(policy, Deployment()), policy);
  CommandRequest other = Deployment();
  other.secrets = {"prod/other"};
  EXPECT_THAT(Refusal(policy, other), HasSubstr("the secret prod/other"));
  other = Deployment();
  other.workspace = "net-11";
  EXPECT_THAT(Refusal(policy, other), HasSubstr("the workspace net-11"));
  other = Deployment();
  other.action = "container";
  EXPECT_NE(Refusal(policy, other), "");
}

TEST(PolicyHintTest, LongListIsNotRepeated) {
  std::string rule = "containers: [{images: ['*'], actions: [deployment], workspaces: [";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&rule, "'workspace-", i, "',");
  const std::string refusal = Refusal(YAML::Load(rule + "]}]"), Deployment());
  EXPECT_THAT(refusal, HasSubstr("workspaces: [those that it has, \"net-1\"]"));
  EXPECT_THAT(refusal, Not(HasSubstr("workspace-99")));
}

}  // namespace
}  // namespace muster
