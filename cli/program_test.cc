// Tests the real program: its output and exit codes. testing/e2e/cli_test.go tests commands that
// need services.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/supervisor/test_folder.h"
#include "services/common/base/subprocess.h"

namespace muster::cli {
namespace {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

Outcome Muster(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), "cli/muster");
  environment.push_back("PATH=/usr/bin:/bin");
  auto process = Subprocess::Start({.argv = std::move(arguments),
                                    .environment = std::move(environment),
                                    .out = ChildOutput::Tail(size_t{1} << 20),
                                    .err = ChildOutput::Tail(size_t{1} << 20)});
  EXPECT_TRUE(process.ok()) << process.status();
  const auto end = (*process)->Wait(absl::Minutes(1));
  EXPECT_TRUE(end.has_value());
  return {end->exit_code, (*process)->StdoutTail(), (*process)->StderrTail()};
}

TEST(ProgramTest, VersionAsJsonPrintsOnlyDataOnStdout) {
  const Outcome version = Muster({"version", "--json"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.err, "");
  EXPECT_TRUE(nlohmann::json::parse(version.out).contains("version"));
}

TEST(ProgramTest, InvalidArgumentsExitWith2AndPrintNothingOnStdout) {
  const std::vector<std::vector<std::string>> faults = {
      {},
      {"nonsense"},
      {"operator"},
      {"operator", "nonsense"},
      {"run", "--nonsense"},
      {"run"},
      {"run", "--plugin", "hostfacts", "--timeout", "soon"},
      {"cancel"},
      {"completion", "ksh"},
      {"results", "--mode", "nonsense"},
      {"runs", "--limit", "0"},
      {"up", "--port", "65536"},
      {"up", "--timeout", "0s"},
      {"credentials", "export", "3f2a", "--plugin", "p"},
      {"credentials", "export", "3f2a", "--plugin", "p", "--node", "n", "--any-node"},
      {"submit"},
      {"exec", "--node", "n1"},
      {"exec", "--node", "--", "/bin/true"},
      {"node", "label", "n1", "--remove", "--", "a=b"},
      {"runs", "--", "--help"},
      {"--", "version"},
  };
  for (const auto& arguments : faults) {
    const Outcome outcome = Muster(arguments);
    const std::string shown = arguments.empty() ? "" : arguments.front();
    EXPECT_EQ(outcome.code, 2) << shown << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << shown;
    EXPECT_NE(outcome.err, "") << shown;
  }
}

TEST(ProgramTest, MissingContextFilePrintsThreeErrorLines) {
  const supervisor::TestFolder folder;
  const std::string file = folder / "none.json";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"runs"},
        {"status"},
        {"results"},
        {"retrieve"},
        {"cancel", "3f2a"},
        {"delete", "3f2a"},
        {"operator", "list"},
        {"operator", "add", "x"},
        {"run", "--plugin", "hostfacts", "--node", "n1"}}) {
    const Outcome outcome = Muster(command, {"MUSTER_CONTEXT=" + file});
    EXPECT_EQ(outcome.code, 1) << command.front();
    EXPECT_EQ(outcome.out, "") << command.front();
    EXPECT_EQ(outcome.err.rfind("error: ", 0), 0U) << outcome.err;
    EXPECT_NE(outcome.err.find("\n   on: context file " + file + "\n next: "), std::string::npos)
        << outcome.err;
  }
}

TEST(ProgramTest, ContextOptionOverridesTheVariableAndTheHome) {
  const Outcome option = Muster({"runs", "--context", "/none/a"}, {"MUSTER_CONTEXT=/none/b"});
  EXPECT_NE(option.err.find("context file /none/a\n"), std::string::npos) << option.err;
  const Outcome variable = Muster({"runs"}, {"MUSTER_CONTEXT=/none/b", "MUSTER_HOME=/none/c"});
  EXPECT_NE(variable.err.find("context file /none/b\n"), std::string::npos) << variable.err;
  const Outcome home = Muster({"runs"}, {"MUSTER_HOME=/none/c"});
  EXPECT_NE(home.err.find("context file /none/c/context.json\n"), std::string::npos) << home.err;
  EXPECT_NE(Muster({"runs"}).err.find("NO_HOME"), std::string::npos);
}

TEST(ProgramTest, DownWithoutUpReportsThatNothingRuns) {
  const supervisor::TestFolder folder;
  const Outcome outcome = Muster({"down"}, {"MUSTER_HOME=" + (folder / "home")});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "No services are running in " + (folder / "home") + ".\n");
}

TEST(ProgramTest, UpWithoutServiceProgramsFails) {
  const supervisor::TestFolder folder;
  const Outcome outcome = Muster({"up", "--port", "0"}, {"MUSTER_HOME=" + (folder / "home"),
                                                         "MUSTER_LIBEXEC=" + (folder / "none")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("PROGRAM_MISSING"), std::string::npos) << outcome.err;
}

void ExpectHelp(const CLI::App& app, std::vector<std::string> words) {
  std::vector<std::string> arguments = words;
  arguments.push_back("--help");
  const Outcome outcome = Muster(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("\nExample:\n  "), std::string::npos) << outcome.out;
  for (const CLI::App* inner : app.get_subcommands({})) {
    std::vector<std::string> longer = words;
    longer.push_back(inner->get_name());
    ExpectHelp(*inner, longer);
  }
}

TEST(ProgramTest, HelpOfEveryCommandHasAnExample) { ExpectHelp(MakeCommandLine()->app, {}); }

}  // namespace
}  // namespace muster::cli
