#include "cli/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

// A program with a command of each kind.
struct Program {
  Program() {
    app.require_subcommand(1);
    send->positionals_at_end();
    send->add_option("-n,--node", nodes)->delimiter(',');
    send->add_option("--label", labels);
    send->add_option("--title", title);
    send->add_flag("-a,--all", all);
    send->add_flag("-q", quiet);
    send->add_option("COMMAND", words)->required();
    set->add_option("NODE", title)->required();
    set->add_option("LABEL", words);
    set->add_option("--remove", labels);
    set->add_flag("--all", all);
    list->add_option("--label", labels);
    list->add_flag("--all", all);
  }

  // Returns the error of CLI11, or an empty text.
  std::string Parse(const Words& line) {
    try {
      ParseWords(app, line);
      return "";
    } catch (const CLI::ParseError& fault) {
      return WithoutMarks(fault.what());
    }
  }

  CLI::App app{"", "program"};
  CLI::App* send = app.add_subcommand("send");
  CLI::App* set = app.add_subcommand("set");
  CLI::App* list = app.add_subcommand("list");
  Words nodes;
  Words labels;
  Words words;
  std::string title;
  bool all = false;
  bool quiet = false;
};

TEST(WordsTest, DashDashAfterAListOptionEndsTheOptions) {
  for (const Words& line : {Words{"send", "--node", "n1", "--", "seq", "3", "--node", "n2"},
                            {"send", "--node=n1", "--", "seq", "3", "--node", "n2"},
                            {"send", "-n", "n1", "--", "seq", "3", "--node", "n2"},
                            {"send", "-nn1", "--", "seq", "3", "--node", "n2"}}) {
    Program program;
    EXPECT_EQ(program.Parse(line), "");
    EXPECT_THAT(program.nodes, ElementsAre("n1"));
    EXPECT_THAT(program.words, ElementsAre("seq", "3", "--node", "n2"));
  }
}

TEST(WordsTest, DashDashAfterAFlagOrAnArgumentEndsTheOptions) {
  Program flag;
  EXPECT_EQ(flag.Parse({"send", "--all", "--", "ls", "--title", "x"}), "");
  EXPECT_THAT(flag.words, ElementsAre("ls", "--title", "x"));
  EXPECT_EQ(flag.title, "");

  Program argument;
  EXPECT_EQ(argument.Parse({"set", "n1", "a=b", "--remove", "c", "--", "--all", "d=e"}), "");
  EXPECT_THAT(argument.words, ElementsAre("a=b", "--all", "d=e"));
  EXPECT_THAT(argument.labels, ElementsAre("c"));
  EXPECT_FALSE(argument.all);
}

TEST(WordsTest, ListOptionTakesOneValueEachTime) {
  Program program;
  EXPECT_EQ(program.Parse({"set", "n1", "--remove", "a", "b=c", "--remove", "d", "e=f"}), "");
  EXPECT_THAT(program.labels, ElementsAre("a", "d"));
  EXPECT_THAT(program.words, ElementsAre("b=c", "e=f"));
}

TEST(WordsTest, ValueWithDelimitersIsSplit) {
  Program program;
  EXPECT_EQ(program.Parse({"send", "--node", "n1,n2", "--node=n3", "ls"}), "");
  EXPECT_THAT(program.nodes, ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(program.words, ElementsAre("ls"));
}

TEST(WordsTest, PositionalsAtEndEndsTheOptionsAtTheFirstArgument) {
  Program program;
  EXPECT_EQ(program.Parse({"send", "--all", "sh", "-c", "x", "--", "--node", "n2", "-a"}), "");
  EXPECT_THAT(program.words, ElementsAre("sh", "-c", "x", "--", "--node", "n2", "-a"));
  EXPECT_THAT(program.nodes, IsEmpty());
}

TEST(WordsTest, OptionsAndArgumentsWithoutPositionalsAtEndMayBeMixed) {
  Program program;
  EXPECT_EQ(program.Parse({"set", "n1", "--all", "a=b", "--remove", "c"}), "");
  EXPECT_EQ(program.title, "n1");
  EXPECT_TRUE(program.all);
  EXPECT_THAT(program.words, ElementsAre("a=b"));
}

TEST(WordsTest, ArgumentsWithBracketsOrDashesAreUnchanged) {
  const Words odd = {"[a,b]", "[", "]", "[]", "", "--", "++", "-5", "---", "{}", "send", "\x01x"};
  Words line = {"send", "--all", "--"};
  line.insert(line.end(), odd.begin(), odd.end());
  Program with_dashes;
  EXPECT_EQ(with_dashes.Parse(line), "");
  EXPECT_EQ(with_dashes.words, odd);

  line.erase(line.begin() + 2);
  Program without;
  EXPECT_EQ(without.Parse(line), "");
  EXPECT_EQ(without.words, odd);
}

TEST(WordsTest, UnknownOptionOfDashesOrDigitsIsAnArgument) {
  for (const std::string word : {"-5", "---", "-"}) {
    Program program;
    EXPECT_EQ(program.Parse({"send", "--all", word, "--node=n2"}), "");
    EXPECT_THAT(program.words, ElementsAre(word, "--node=n2"));
  }
}

TEST(WordsTest, ValuesWithBracketsOrDashesAreUnchanged) {
  for (const std::string value : {"", "[a,b]", "-5", "--all", "send", "a=b", "{}"}) {
    Program program;
    EXPECT_EQ(program.Parse({"send", "--title", value, "--label", value, "ls"}), "");
    EXPECT_EQ(program.title, value);
    EXPECT_THAT(program.labels, ElementsAre(value));
    Program attached;
    EXPECT_EQ(attached.Parse({"send", "--title=" + value, "--label=" + value, "ls"}), "");
    EXPECT_EQ(attached.title, value);
    EXPECT_THAT(attached.labels, ElementsAre(value));
    EXPECT_THAT(attached.words, ElementsAre("ls"));
  }
  Program dashes;
  EXPECT_EQ(dashes.Parse({"send", "--title=--", "ls"}), "");
  EXPECT_EQ(dashes.title, "--");
}

TEST(WordsTest, ShortOptionAfterFlagsTakesItsValue) {
  for (const Words& line : {Words{"send", "-qan", "n1", "ls"}, {"send", "-qann1", "ls"}}) {
    Program program;
    EXPECT_EQ(program.Parse(line), "");
    EXPECT_TRUE(program.all && program.quiet);
    EXPECT_THAT(program.nodes, ElementsAre("n1"));
    EXPECT_THAT(program.words, ElementsAre("ls"));
  }
}

TEST(WordsTest, OptionWithoutValueFails) {
  for (const Words& line : {Words{"send", "--node"},
                            {"send", "--node", "--", "ls"},
                            {"send", "-n", "--", "ls"},
                            {"send", "-an", "--", "ls"},
                            {"send", "--title", "--", "ls"},
                            {"send", "--node", ",", "--all", "ls"},
                            {"send", "--node=,", "--", "ls"},
                            {"send", "-n,", "--all", "ls"}}) {
    Program program;
    EXPECT_NE(program.Parse(line).find(" required TEXT missing"), std::string::npos) << line[1];
  }
}

TEST(WordsTest, ArgumentAfterDashDashFailsWithoutPositionals) {
  for (const std::string word : {"x", "--all", "--help", "--label"}) {
    Program program;
    EXPECT_EQ(program.Parse({"list", "--label", "a=b", "--", word}),
              "The following argument was not expected: " + word);
    EXPECT_THAT(program.list->get_option("--label")->results(), ElementsAre("a=b"));
    EXPECT_EQ(program.list->get_option("--all")->count(), 0U);
  }
}

TEST(WordsTest, CommandAfterDashDashFails) {
  Program program;
  EXPECT_NE(program.Parse({"--", "list", "--all"}), "");
  EXPECT_TRUE(program.app.get_subcommands().empty());
}

TEST(WordsTest, UnknownOptionFails) {
  for (const std::string word : {"--nothing", "--nothing=x", "-x", "-ax"}) {
    Program program;
    EXPECT_NE(program.Parse({"send", word, "ls"}), "") << word;
  }
}

}  // namespace
}  // namespace muster::cli
