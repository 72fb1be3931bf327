#include "cli/commands/keep_rules.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(KeepRulesTest, RulesAreParsedAndPrinted) {
  const auto rules = ParseKeepRules("bytes=500G,age=30d,runs=1000");
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->age().seconds(), 30 * 24 * 3600);
  EXPECT_EQ(rules->runs(), 1000);
  EXPECT_EQ(rules->bytes(), int64_t{500} << 30);
  EXPECT_EQ(KeepRulesText(*rules), "age=30d,runs=1000,bytes=500GiB");
  EXPECT_EQ(KeepRulesYaml(*rules),
            "{age: 720h, runs: 1000, bytes: 500GiB}  # 0: no such rule. Set by `muster up --keep`");
}

TEST(KeepRulesTest, OmittedRulesDoNotApply) {
  EXPECT_EQ(KeepRulesText(*ParseKeepRules("age=90m")), "age=1h30m");
  EXPECT_EQ(KeepRulesYaml(*ParseKeepRules("bytes=1536KiB")),
            "{age: 0, runs: 0, bytes: 1536KiB}  # 0: no such rule. Set by `muster up --keep`");
  EXPECT_EQ(KeepRulesText(*ParseKeepRules("all")), "all");
  EXPECT_EQ(KeepRulesYaml(*ParseKeepRules("all")),
            "{age: 0, runs: 0, bytes: 0}  # 0: no such rule. Set by `muster up --keep`");
}

TEST(KeepRulesTest, OtherTextsAreRefused) {
  for (const char* text :
       {"", "age", "age=", "age=0s", "age=-1h", "runs=0", "runs=-1", "runs=1,runs=2", "runs=x",
        "bytes=0", "bytes=G", "bytes=1.5G", "bytes=2048P", "all,runs=1", "runs=1,", "days=3"}) {
    EXPECT_FALSE(ParseKeepRules(text).ok()) << text;
  }
}

TEST(KeepRulesTest, ErrorNamesTheProblem) {
  const auto message = [](const char* text) {
    return std::string(ParseKeepRules(text).status().message());
  };
  EXPECT_EQ(message("age=30"),
            "--keep: \"age=30\" needs a positive number with a unit (s, m, h or d)");
  EXPECT_EQ(message("all,runs=3"), "--keep: \"all\" excludes other rules");
  EXPECT_EQ(message("runs=3,all"), "--keep: \"all\" excludes other rules");
  EXPECT_EQ(message("runs=5,"), "--keep: there is an empty rule");
  EXPECT_EQ(message("runs=1,runs=2"), "--keep: \"runs=2\" is a second rule for runs");
  EXPECT_EQ(message("days=3"), "--keep: \"days=3\" is not a rule");
}

}  // namespace
}  // namespace muster::cli
