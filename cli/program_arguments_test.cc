// Tests how the real program refuses arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "cli/program_fixture.h"

namespace muster::cli {
namespace {

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
      {"cancel", ""},
      {"delete", ""},
      {"results", ""},
      {"status", ""},
      {"job", "show", ""},
      {"job", "cancel"},
      {"job", "cancel", "--by", "alice", "0123456789abcdef0123456789abcdef"},
      {"node", "show", ""},
      {"token", "revoke", ""},
      {"shared", "show", "--to", "n2", "--id", ""},
      {"node", "label", "n1", "rack=b1", "--remove", "rack"},
      {"exec", "--all", "uptime"},
      {"exec", "--all", "--", ""},
      {"job", "logs", "--position", "-1", "0123456789abcdef0123456789abcdef"},
      {"up", "--bind", "nope"},
      {"up", "--bind", "127.0.0.1:80"},
      {"up", "--advertise", ""},
      {"up", "--advertise", "a b"},
      {"up", "--legacy-ports", "5-3"},
      {"up", "--legacy-host", "example.org"},
      {"agent", "attach", "--parallel", "257"},
      {"shared", "get", "--id", "a", "-o", "b"},
      {"--json", "runs"},
      {"stauts"},
  };
  for (const auto& arguments : faults) {
    // Nothing may be written: the folder cannot be created.
    const Outcome outcome = Muster(arguments, {"MUSTER_HOME=/dev/null/none"});
    const std::string shown = absl::StrJoin(arguments, " ");
    EXPECT_EQ(outcome.code, 2) << shown << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << shown;
    EXPECT_NE(outcome.err, "") << shown;
  }
}

TEST(ProgramTest, UsageErrorNamesTheFaultInOurWords) {
  const auto error = [](const std::vector<std::string>& words) { return Muster(words).err; };
  using ::testing::HasSubstr;
  EXPECT_THAT(error({"stauts"}), HasSubstr("unknown command \"stauts\"; did you mean status?"));
  EXPECT_THAT(error({"runs", "--limt", "3"}),
              HasSubstr("unknown option --limt; did you mean --limit?"));
  EXPECT_THAT(error({"deployment", "list", "--on"}), HasSubstr("error: unknown option --on\n"));
  for (const char* version : {"abc", "0", "-1", "", "1.5", "99999999999999999999"}) {
    EXPECT_THAT(
        error({"workspace", "restore", "w", version}),
        HasSubstr(absl::StrCat("VERSION: \"", version, "\" is not a whole number from 1\n")));
  }
  EXPECT_THAT(error({"runs", "x"}), HasSubstr("error: unexpected argument \"x\"\n"));
  EXPECT_THAT(error({"runs", "--limit"}), HasSubstr("error: --limit: a value is missing\n"));
  EXPECT_THAT(error({"cancel"}), HasSubstr("error: RUN is required"));
  EXPECT_THAT(error({"exec", "--", "/bin/true"}), HasSubstr("error: give one of --all, --label"));
  EXPECT_THAT(error({"exec", "--all", "--node", "n1", "--", "/bin/true"}),
              HasSubstr("error: give only one of --all, --label, and --node or --nodes-file"));
  EXPECT_THAT(error({"completion", "ksh"}), HasSubstr("error: SHELL: "));
  EXPECT_THAT(error({"--json", "runs"}), HasSubstr("option --json precedes the command"));
  EXPECT_THAT(error({"up", "--bind", "nope"}),
              HasSubstr("--bind: \"nope\" is not an IP address (INVALID_HOST)"));
  EXPECT_THAT(error({"up", "--bind", "localhost"}), HasSubstr("such as 127.0.0.1 for this"));
}

}  // namespace
}  // namespace muster::cli
