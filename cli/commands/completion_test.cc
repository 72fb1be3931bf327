#include "cli/commands/completion.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "cli/commands/command.h"

namespace muster::cli {
namespace {

// Declares a program with nested commands, a hidden command, choices and files.
void Declare(CLI::App& app) {
  app.name("prog");
  CLI::App* run = app.add_subcommand("run", "It's a run: it runs");
  static std::string value;
  run->add_option("-f,--file", value, "A file")->type_name(kFileValue);
  run->add_option("--title", value, "A title");
  AllowOnly(*run->add_option("--mode", value, "A mode"), "fast|slow");
  CLI::App* group = app.add_subcommand("operator", "Operators");
  group->add_subcommand("add", "Add one");
  app.add_subcommand("secret", "Not shown")->group("");
}

// Returns the words that bash offers after `line`, whose last word is incomplete.
std::string BashOffers(const std::string& line) {
  CLI::App app;
  Declare(app);
  const std::string script = std::string(::testing::TempDir()) + "/completion.bash";
  std::ofstream(script) << CompletionScript(app, Shell::kBash) << "COMP_WORDS=(" << line << ")\n"
                        << "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                        << "_prog\necho \"${COMPREPLY[*]}\"\n";
  FILE* pipe = ::popen(("bash --norc " + script + " 2>&1").c_str(), "r");
  std::string output;
  char buffer[256];
  while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  EXPECT_EQ(::pclose(pipe), 0) << output;
  std::remove(script.c_str());
  return output;
}

TEST(BashCompletionTest, IncompleteCommandOffersCommandsAndOptions) {
  EXPECT_EQ(BashOffers("prog ''"), "run operator -h --help\n");
  EXPECT_EQ(BashOffers("prog op"), "operator\n");
  EXPECT_EQ(BashOffers("prog operator a"), "add\n");
  EXPECT_EQ(BashOffers("prog run --t"), "--title\n");
}

TEST(BashCompletionTest, OptionOffersItsValues) {
  EXPECT_EQ(BashOffers("prog run --mode ''"), "fast slow\n");
  EXPECT_EQ(BashOffers("prog run --mode s"), "slow\n");
  EXPECT_EQ(BashOffers("prog run --title ''"), "\n");  // any text
  EXPECT_EQ(BashOffers("prog run -f /proc/self/statu"), "/proc/self/status\n");
}

TEST(ZshCompletionTest, SpecialCharactersAreQuoted) {
  CLI::App app;
  Declare(app);
  const std::string script = CompletionScript(app, Shell::kZsh);
  EXPECT_NE(script.find("\"\") items=( 'run:It'\\''s a run\\: it runs' 'operator:Operators'"),
            std::string::npos)
      << script;
  EXPECT_NE(script.find("\"/run,--mode\") compadd fast slow; return ;;"), std::string::npos);
  EXPECT_NE(script.find("\"/run,-f\"|\"/run,--file\") _files; return ;;"), std::string::npos);
  EXPECT_EQ(script.find("secret"), std::string::npos);
}

TEST(FishCompletionTest, EveryCommandAndOptionHasOneLine) {
  CLI::App app;
  Declare(app);
  const std::string script = CompletionScript(app, Shell::kFish);
  EXPECT_NE(script.find("complete -c prog -n '__prog_is \"\"' -a run -d 'It\\'s a run: it runs'\n"),
            std::string::npos)
      << script;
  EXPECT_NE(
      script.find("complete -c prog -n '__prog_is \"/run\"' -s f -l file -r -F -d 'A file'\n"),
      std::string::npos)
      << script;
  EXPECT_NE(script.find(" -l mode -r -a 'fast slow' -d 'A mode'\n"), std::string::npos);
  EXPECT_EQ(script.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace muster::cli
