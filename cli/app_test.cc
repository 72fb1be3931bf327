// Tests all options of all commands: where each one ends. `muster exec` signs the command that the
// program reads.
#include "cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "cli/commands/command.h"
#include "cli/words.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

// The declaration of an option: the words that name its command, and its name with dashes.
struct Place {
  Words command;
  std::string option;
  bool takes_value = false;
  bool takes_list = false;
  bool takes_text = false;
};

std::string NameOf(const CLI::Option& option) {
  return option.get_lnames().empty() ? "-" + option.get_snames().front()
                                     : "--" + option.get_lnames().front();
}

void AddPlaces(const CLI::App& app, const Words& path, std::vector<Place>* places) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->nonpositional()) continue;
    places->push_back({.command = path,
                       .option = NameOf(*option),
                       .takes_value = option->get_items_expected_max() > 0,
                       .takes_list = option->get_items_expected_max() > 1,
                       .takes_text = option->get_type_name() == kTextValue});
  }
  for (const CLI::App* inner : app.get_subcommands({})) {
    Words longer = path;
    longer.push_back(inner->get_name());
    AddPlaces(*inner, longer, places);
  }
}

std::vector<Place> AllOptions() {
  std::vector<Place> places;
  AddPlaces(MakeCommandLine()->app, {}, &places);
  return places;
}

// The program after it has parsed words. It runs no action.
class Parsed {
 public:
  explicit Parsed(const Words& command, const Words& words = {})
      : line_(MakeCommandLine()), command_(&line_->app) {
    Words all = command;
    all.insert(all.end(), words.begin(), words.end());
    try {
      ParseWords(line_->app, all);
    } catch (const CLI::CallForHelp&) {
      wants_help_ = true;
    } catch (const CLI::ParseError& fault) {
      fault_ = WithoutMarks(fault.what());
    }
    for (const std::string& name : command) command_ = command_->get_subcommand(name);
  }

  const std::string& fault() const { return fault_; }
  bool wants_help() const { return wants_help_; }
  const Words& Values(const std::string& option) const {
    return command_->get_option(option)->results();
  }

 private:
  std::unique_ptr<CommandLine> line_;
  CLI::App* command_;  // the innermost one
  std::string fault_;
  bool wants_help_ = false;
};

TEST(AppTest, EveryOptionTakesAtMostOneValue) {
  const std::unique_ptr<CommandLine> line = MakeCommandLine();
  for (const Place& place : AllOptions()) {
    CLI::App* command = &line->app;
    for (const std::string& name : place.command) command = command->get_subcommand(name);
    EXPECT_EQ(command->get_option(place.option)->get_items_expected_min(),
              place.takes_value ? 1 : 0)
        << absl::StrJoin(place.command, " ") << " " << place.option;
  }
}

TEST(AppTest, DashDashAfterEveryListOptionEndsTheOptions) {
  int lists = 0;
  for (const Place& place : AllOptions()) {
    if (!place.takes_list) continue;
    ++lists;
    SCOPED_TRACE(absl::StrJoin(place.command, " ") + " " + place.option);
    const Parsed separate(place.command, {place.option, "v1", "--", "word", place.option, "v2"});
    EXPECT_THAT(separate.Values(place.option), ElementsAre("v1"));
    const Parsed attached(place.command, {place.option + "=v1", "--", "word", place.option, "v2"});
    EXPECT_THAT(attached.Values(place.option), ElementsAre("v1"));
  }
  EXPECT_GE(lists, 15);
}

TEST(AppTest, EveryRepeatedListOptionTakesOneValueEachTime) {
  for (const Place& place : AllOptions()) {
    if (!place.takes_list) continue;
    SCOPED_TRACE(absl::StrJoin(place.command, " ") + " " + place.option);
    const Parsed parsed(place.command, {place.option, "v1", place.option, "v2", "word"});
    EXPECT_THAT(parsed.Values(place.option), ElementsAre("v1", "v2"));
  }
}

TEST(AppTest, OptionAfterDashDashIsAnArgument) {
  for (const Place& place : AllOptions()) {
    SCOPED_TRACE(absl::StrJoin(place.command, " ") + " " + place.option);
    const Parsed parsed(place.command, {"--", "word", place.option, "v1"});
    EXPECT_THAT(parsed.Values(place.option), IsEmpty());
    EXPECT_FALSE(parsed.wants_help());
  }
}

TEST(AppTest, EveryOptionWithoutItsValueFails) {
  for (const Place& place : AllOptions()) {
    if (!place.takes_value) continue;
    SCOPED_TRACE(absl::StrJoin(place.command, " ") + " " + place.option);
    const Parsed parsed(place.command, {place.option, "--", "word"});
    EXPECT_THAT(parsed.Values(place.option), IsEmpty());
    EXPECT_NE(parsed.fault(), "");
  }
}

TEST(AppTest, OptionIsNotTheValueOfAnotherOptionExceptOfText) {
  for (const Place& place : AllOptions()) {
    if (!place.takes_value || place.takes_text) continue;
    SCOPED_TRACE(absl::StrJoin(place.command, " ") + " " + place.option);
    for (const std::string& next : {std::string("--help"), place.option, place.option + "=v1"}) {
      const Parsed parsed(place.command, {place.option, next, "word"});
      EXPECT_NE(parsed.fault(), "");
      EXPECT_FALSE(parsed.wants_help());
    }
    const Parsed attached(place.command, {place.option + "=--help"});
    EXPECT_THAT(attached.Values(place.option), ElementsAre("--help"));
  }
}

TEST(AppTest, ExecAfterDashDashTakesAllWordsAsTheCommand) {
  for (const Words& tail : {Words{"/usr/bin/seq", "3", "--node", "n2"},
                            {"/usr/bin/seq", "3", "--ttl", "9h"},
                            {"/usr/bin/seq", "3", "--json"},
                            {"/usr/bin/seq", "3", "--detach"},
                            {"/usr/bin/env", "--", "--all", "[a,b]", "--env", "A=b"}}) {
    for (const Words& targets : {Words{"--node", "n1"},
                                 {"--node", "n1", "--label", "rack=b1"},
                                 {"--node", "n1", "--env", "A=b"},
                                 {"--node", "n1", "--class", "linux"}}) {
      Words words = targets;
      words.push_back("--");
      words.insert(words.end(), tail.begin(), tail.end());
      const Parsed parsed({"exec"}, words);
      EXPECT_EQ(parsed.fault(), "");
      EXPECT_EQ(parsed.Values("COMMAND"), tail);
      EXPECT_THAT(parsed.Values("--node"), ElementsAre("n1"));
      EXPECT_THAT(parsed.Values("--ttl"), IsEmpty());
      EXPECT_THAT(parsed.Values("--json"), IsEmpty());
      EXPECT_THAT(parsed.Values("--detach"), IsEmpty());
    }
  }
}

TEST(AppTest, ExecAfterTheProgramTakesAllWordsAsItsArguments) {
  const Parsed parsed({"exec"}, {"--node", "n1", "/bin/ls", "--node", "n2", "--", "--json", "-la"});
  EXPECT_EQ(parsed.fault(), "");
  EXPECT_THAT(parsed.Values("--node"), ElementsAre("n1"));
  EXPECT_THAT(parsed.Values("COMMAND"),
              ElementsAre("/bin/ls", "--node", "n2", "--", "--json", "-la"));
}

TEST(AppTest, NodeLabelAfterARemovedKeySetsTheLabels) {
  for (const Words& words : {Words{"n2", "--remove", "rack", "a=b"},
                             {"n2", "--remove", "rack", "--", "a=b"},
                             {"--remove", "rack", "n2", "a=b"},
                             {"--remove=rack", "--", "n2", "a=b"}}) {
    const Parsed parsed({"node", "label"}, words);
    EXPECT_EQ(parsed.fault(), "");
    EXPECT_THAT(parsed.Values("--remove"), ElementsAre("rack"));
    EXPECT_THAT(parsed.Values("NODE"), ElementsAre("n2"));
    EXPECT_THAT(parsed.Values("LABEL"), ElementsAre("a=b"));
  }
  const Parsed more({"node", "label"}, {"n2", "a=b", "--remove", "rack", "--", "c=d"});
  EXPECT_EQ(more.fault(), "");
  EXPECT_THAT(more.Values("LABEL"), ElementsAre("a=b", "c=d"));
}

}  // namespace
}  // namespace muster::cli
