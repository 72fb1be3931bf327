#include "cli/argument_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands/command.h"
#include "cli/words.h"

namespace muster::cli {
namespace {

constexpr char kLatin1[] = "caf\xe9";

absl::Status Check(const std::vector<std::string>& words) {
  CLI::App app;
  std::string title;
  std::string key;
  std::vector<std::string> nodes;
  std::string file;
  std::string error;
  CLI::App* const run = app.add_subcommand("run");
  run->add_option("-t,--title", title);
  run->add_option("--key", key)->type_name(kFileValue);
  run->add_option("NODE", nodes);
  CLI::App* const submit = app.add_subcommand("submit");
  submit->add_option("FILE", file)->type_name("");
  submit->add_option("--error", error);
  ParseWords(app, words);
  return CheckArgumentText(app);
}

TEST(ArgumentTextTest, ValueThatIsNotUtf8FailsWithTheNameOfTheOption) {
  const absl::Status status = Check({"run", "-t", kLatin1});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "the value of --title is not UTF-8: \"caf\xef\xbf\xbd\"");
}

TEST(ArgumentTextTest, ArgumentThatIsNotUtf8FailsWithItsName) {
  EXPECT_EQ(Check({"run", "n1", kLatin1}).message(),
            "the value of NODE is not UTF-8: \"caf\xef\xbf\xbd\"");
}

TEST(ArgumentTextTest, Utf8IsAccepted) {
  EXPECT_TRUE(Check({"run", "--title", "caf\xc3\xa9", "n1"}).ok());
}

TEST(ArgumentTextTest, PathsAndErrorTextMayBeAnyBytes) {
  EXPECT_TRUE(Check({"run", "--key", kLatin1}).ok());
  EXPECT_TRUE(Check({"submit", kLatin1}).ok());
  EXPECT_TRUE(Check({"submit", "--error", kLatin1}).ok());
}

absl::Status CheckEmpty(const std::vector<std::string>& words) {
  CLI::App app;
  std::string run;
  std::string title;
  std::string host;
  std::vector<std::string> nodes;
  std::vector<std::string> program;
  CLI::App* const remove = app.add_subcommand("delete");
  remove->add_option("RUN", run)->required()->type_name("");
  remove->add_option("--node", nodes)->delimiter(',')->type_name("NAME");
  remove->add_option("--title", title)->type_name(kTextValue);
  remove->add_option("--legacy-host", host)->type_name("PATTERN");
  CLI::App* const exec = app.add_subcommand("exec");
  exec->positionals_at_end();
  exec->add_option("COMMAND", program)->required()->type_name("");
  ParseWords(app, words);
  return CheckArgumentText(app);
}

TEST(ArgumentTextTest, EmptyArgumentFailsWithItsName) {
  EXPECT_EQ(CheckEmpty({"delete", ""}).message(), "the value of RUN is empty");
  EXPECT_EQ(CheckEmpty({"delete", "--", ""}).message(), "the value of RUN is empty");
}

TEST(ArgumentTextTest, EmptyOptionFailsWithItsName) {
  EXPECT_EQ(CheckEmpty({"delete", "3f2a", "--node", ""}).message(), "the value of --node is empty");
  EXPECT_EQ(CheckEmpty({"delete", "3f2a", "--node="}).message(), "the value of --node is empty");
}

TEST(ArgumentTextTest, FreeTextAndLegacyHostMayBeEmpty) {
  EXPECT_TRUE(CheckEmpty({"delete", "3f2a", "--title", "", "--legacy-host", ""}).ok());
}

TEST(ArgumentTextTest, OnlyTheProgramOfExecMustNotBeEmpty) {
  EXPECT_TRUE(CheckEmpty({"exec", "--", "/bin/echo", "", "x"}).ok());
  EXPECT_EQ(CheckEmpty({"exec", "--", "", "x"}).message(), "the value of COMMAND is empty");
}

}  // namespace
}  // namespace muster::cli
