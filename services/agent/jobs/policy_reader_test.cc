#include "services/agent/jobs/policy_reader.h"

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
constexpr char kFile[] = "/etc/policy.yaml";

std::string MistakesIn(std::string_view yaml) {
  const auto rules = ReadPolicy(yaml, kFile);
  EXPECT_EQ(ReasonOf(rules.status()), "POLICY_UNUSABLE");
  return std::string(rules.status().message());
}

TEST(PolicyReaderTest, ListOfTheWrongTypeIsOneMistake) {
  EXPECT_EQ(MistakesIn("commands: [{argv: /bin/ls}]"), "/etc/policy.yaml:1: argv: must be a list");
  EXPECT_EQ(MistakesIn("commands: [{argv: [/bin/ls], signers: x}]"),
            "/etc/policy.yaml:1: signers: must be a list");
  EXPECT_EQ(MistakesIn("commands: [{argv: []}]"), "/etc/policy.yaml:1: argv: is missing or empty");
}

TEST(PolicyReaderTest, RepositoriesAreForBuildsAlone) {
  EXPECT_THAT(MistakesIn("containers: [{images: ['*'], actions: [build]}]"),
              HasSubstr("repositories: is missing or empty: the action build requires"));
  EXPECT_THAT(MistakesIn("containers: [{images: ['*'], repositories: ['*']}]"),
              HasSubstr("repositories: is only for the action build"));
}

TEST(PolicyReaderTest, MistakesInRulesForContainersAreListed) {
  const std::string mistakes = MistakesIn(
      "containers:\n"
      "  - argv: [x]\n"
      "  - images: x\n"
      "  - {images: [x], memory: 1MiB}\n"
      "  - {images: [x], cpus: nan}\n"
      "  - {images: [x], processes: 0}\n"
      "  - {images: [x], argv: [\"**\", y]}\n"
      "  - {images: [x], actions: [exec]}\n"
      "  - just text\n");
  for (const std::string mistake :
       {":2: images: is missing or empty", ":3: images: must be a list",
        ":4: memory: must be a size from 8MiB", ":5: cpus: must be a number from 0.01",
        ":6: processes: must be a number from 1", ":7: argv: ** must be the last",
        ":8: actions: an action is container, deployment, ad-hoc or build",
        ":9: containers: a rule is a map"}) {
    EXPECT_NE(mistakes.find(mistake), std::string::npos) << mistake << " is not in\n" << mistakes;
  }
}

TEST(PolicyReaderTest, EveryMistakeIsReportedWithItsLine) {
  const std::string mistakes = MistakesIn(
      "commands:\n"
      "  - argv: [ls]\n"
      "    time_limt: 5m\n"
      "  - argv: [/bin/ls, '**', x]\n"
      "    time_limit: 2d\n"
      "    max_output: lots\n"
      "    actions: [shell]\n"
      "    directory: tmp\n"
      "    signers: []\n"
      "  - user: root\n"
      "colect: [hostfacts]\n");
  for (const char* mistake :
       {"/etc/policy.yaml:2: argv: the program must be an absolute path",
        "/etc/policy.yaml:3: commands.time_limt: no such field; did you mean time_limit?",
        "/etc/policy.yaml:4: argv: ** must be the last element", ":5: time_limit: must be a time",
        ":6: max_output: must be a size", ":7: actions: an action is", ":4: directory: must be",
        ":9: signers: must not be empty", ":10: argv: is missing",
        ":11: colect: no such field; did you mean collect?"}) {
    EXPECT_NE(mistakes.find(mistake), std::string::npos) << mistake << "\nnot in:\n" << mistakes;
  }
  EXPECT_NE(MistakesIn("a: [").find("not YAML"), std::string::npos);
  EXPECT_NE(MistakesIn("[1, 2]").find("a policy is a map"), std::string::npos);
}

}  // namespace
}  // namespace muster
