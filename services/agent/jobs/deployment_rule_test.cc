#include "services/agent/jobs/deployment_rule.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const std::string kImage = "a@sha256:" + std::string(64, 'a');

v1::Command::Container Container(const std::string& more = "", const std::string& own = "") {
  v1::Command::Container container;
  container.set_image(kImage);
  v1::Command::Deployment& deployment = *container.mutable_deployment();
  deployment.set_action("deploy");
  deployment.set_type_document(
      absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\n"
                   "contract: 1\nimage: ",
                   kImage, "\n", more));
  if (own.empty()) return container;
  deployment.set_template_document(absl::StrCat(
      "apiVersion: muster/v1\nkind: Template\nname: w\nversion: 1.0.0\ntype: t@1.0.0\n", own));
  return container;
}

absl::Status Apply(const v1::Command::Container& container, CommandRule* rule) {
  const auto resolved = ResolveDeployment(container.deployment());
  if (!resolved.ok()) return resolved.status();
  return ApplyDeployment(*resolved, container.image(), rule);
}

void ExpectRefused(const v1::Command::Container& container, const std::string& reason,
                   const std::string& message) {
  CommandRule rule;
  const absl::Status status = Apply(container, &rule);
  EXPECT_EQ(ReasonOf(status), reason);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(DeploymentRuleTest, SmallerLimitApplies) {
  const v1::Command::Container container =
      Container("limits: {memory: 64MiB, cpus: 2, processes: 10, time: 2h, output: 1MiB}\n",
                "limits: {cpus: 0.25}\n");
  CommandRule rule;
  rule.container = {.memory = int64_t{128} << 20, .nano_cpus = 1'000'000'000, .processes = 5};
  rule.time_limit = absl::Minutes(5);
  rule.max_output = 7;
  ASSERT_TRUE(Apply(container, &rule).ok());
  EXPECT_EQ(rule.container.memory, int64_t{64} << 20);
  EXPECT_EQ(rule.container.nano_cpus, 250'000'000);
  EXPECT_EQ(rule.container.processes, 5);
  EXPECT_EQ(rule.time_limit, absl::Minutes(5));
  EXPECT_EQ(rule.max_output, 7);
  rule = {};
  ASSERT_TRUE(Apply(container, &rule).ok());
  EXPECT_EQ(rule.container.processes, 10);
  EXPECT_EQ(rule.time_limit, absl::Hours(1)) << "that of the rule";
  EXPECT_EQ(rule.max_output, 1 << 20);
}

TEST(DeploymentRuleTest, DocumentsWithoutLimitsHaveThoseOfTheRule) {
  CommandRule rule;
  const CommandRule before = rule;
  ASSERT_TRUE(Apply(Container(), &rule).ok());
  EXPECT_EQ(rule.container.memory, before.container.memory);
  EXPECT_EQ(rule.container.nano_cpus, before.container.nano_cpus);
  EXPECT_EQ(rule.container.processes, before.container.processes);
  EXPECT_EQ(rule.time_limit, before.time_limit);
  EXPECT_EQ(rule.max_output, before.max_output);
}

TEST(DeploymentRuleTest, NetworkIsThatOfRuleAndType) {
  CommandRule rule;
  rule.container.network = "jobs";
  ASSERT_TRUE(Apply(Container("network: jobs\n"), &rule).ok());
  EXPECT_EQ(rule.container.network, "jobs");
  ASSERT_TRUE(Apply(Container(), &rule).ok());
  EXPECT_EQ(rule.container.network, "none");
}

TEST(DeploymentRuleTest, ImageMustBeThatOfTheType) {
  v1::Command::Container container = Container();
  container.set_image("b@sha256:" + std::string(64, 'b'));
  ExpectRefused(container, "INVALID_DOCUMENT", container.image());
}

}  // namespace
}  // namespace muster
