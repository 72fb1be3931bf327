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

}  // namespace
}  // namespace muster::cli
