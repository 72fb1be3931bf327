// Tests the real program: its output and exit codes. testing/e2e/cli_test.go tests commands that
// need services.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/app.h"
#include "cli/program_fixture.h"
#include "cli/supervisor/control_socket.h"
#include "cli/supervisor/home.h"
#include "cli/supervisor/listening_sockets.h"
#include "cli/supervisor/service_files.h"
#include "cli/supervisor/test_folder.h"
#include "services/common/base/inspection_server.h"
#include "services/common/base/metrics.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/subprocess.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/home.h"
#include "services/common/identity/join_token.h"
#include "testing/fixtures/await.h"

namespace muster::cli {
namespace {

// A home, and programs in place of the services: shell scripts.
class FakeInstallation {
 public:
  // Each service runs `script`, in which $1 and $2 are --config and its file.
  explicit FakeInstallation(const std::string& script) {
    for (const std::string_view name : supervisor::kServices) {
      const std::string service(name);
      const std::string program = folder_ / ("muster-" + service);
      EXPECT_TRUE(WriteFileAtomically(
                      program, "#!/bin/sh\n[ \"$1\" = --print-config ] && exit\n" + script + "\n")
                      .ok());
      EXPECT_EQ(::chmod(program.c_str(), 0700), 0);
    }
    EXPECT_EQ(::mkdir((folder_ / "home").c_str(), 0700), 0);
  }

  std::string operator/(const std::string& name) const { return folder_ / ("home/" + name); }

  std::vector<std::string> environment() const {
    return {"MUSTER_HOME=" + (folder_ / "home"), "MUSTER_LIBEXEC=" + (folder_ / "")};
  }

  Outcome operator()(std::vector<std::string> arguments) const {
    return Muster(std::move(arguments), environment());
  }

 private:
  const supervisor::TestFolder folder_;
};

TEST(ProgramTest, FailedUpPrintsOnlyTheLogLinesOfThisStart) {
  const FakeInstallation muster("cat \"$MUSTER_HOME/cause\"; exit 1");
  const std::vector<std::string> up = {"up", "--port", "0", "--legacy-ports", "0"};
  const auto fail = [&](const std::string& cause) {
    EXPECT_TRUE(WriteFileAtomically(muster / "cause", cause + "\n").ok());
    const Outcome outcome = muster(up);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("SERVICE_FAILED"));
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("aggregator.log:\n" + cause + "\n"));
    return outcome.err;
  };
  fail("first cause");
  EXPECT_THAT(fail("second cause"), ::testing::Not(::testing::HasSubstr("first cause")));
}

TEST(ProgramTest, FailedUpNamesTheAddressThatAnotherProgramUses) {
  supervisor::ListeningSockets other;
  const auto used = other.Listen("other", {"127.0.0.1", 0});
  ASSERT_TRUE(used.ok()) << used.status();
  const FakeInstallation muster("echo cause; exit 1");
  const Outcome outcome = muster({"up", "--port", "0", "--legacy-ports", "0", "--aggregator-port",
                                  std::to_string(used->address.port)});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("aggregator cannot listen on " +
                                                used->address.ToString() + ": Address already"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("LISTEN_FAILED"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("aggregator.log:\ncause\n"));
}

// The supervisor keeps the gateway's socket open when the gateway fails for another reason, such as
// the port of another listener.
TEST(ProgramTest, FailedUpPrintsTheLogOfAGatewayWhoseSocketIsOpen) {
  const Metrics metrics;
  const auto ready = InspectionServer::Start(metrics, {});
  ASSERT_TRUE(ready.ok()) << ready.status();
  const FakeInstallation muster(
      "if [ \"${0##*/}\" = muster-gateway ]; then\n"
      "  until [ -e \"$MUSTER_HOME/open\" ]; do sleep 0.05; done\n"
      "  echo rudder.listen: address already in use; exit 1\n"
      "fi\n"
      "echo '{\"inspection\":\"127.0.0.1:" +
      std::to_string((*ready)->port()) +
      "\"}' > \"$MUSTER_HOME/run/${0##*muster-}.addresses.json\"\n"
      "while :; do sleep 0.05; done");
  auto up = Subprocess::Start({.argv = {"cli/muster", "up", "--port", "0", "--legacy-ports", "0"},
                               .environment = muster.environment(),
                               .err = ChildOutput::Tail(size_t{1} << 20)});
  ASSERT_TRUE(up.ok()) << up.status();
  const Home home(muster / "");
  EXPECT_TRUE(testing::Await([&] {
    const auto address = supervisor::ListenAddress(home, "gateway");
    if (!address.ok() || !*address) return false;
    const nlohmann::json request = {{"listen", (*address)->ToString()}, {"name", "gateway"}};
    const auto answer = supervisor::CallSupervisor(supervisor::SupervisorSocket(home),
                                                   request.dump(), absl::Seconds(5));
    return answer.ok() && nlohmann::json::parse(*answer).contains("address");
  }));
  EXPECT_TRUE(WriteFileAtomically(muster / "open", "").ok());
  EXPECT_TRUE((*up)->Wait(absl::Minutes(1)).has_value());
  const std::string err = (*up)->StderrTail();
  EXPECT_THAT(err, ::testing::HasSubstr("gateway.log:\nrudder.listen: address already in use\n"));
  EXPECT_THAT(err, ::testing::HasSubstr("SERVICE_FAILED"));
  EXPECT_THAT(err, ::testing::Not(::testing::HasSubstr("LISTEN_FAILED")));
}

TEST(ProgramTest, DownReportsTheServicesThatItWaitsFor) {
  const FakeInstallation muster(
      "case $0 in */muster-aggregator) trap '' TERM ;; esac\n"
      "touch \"$MUSTER_HOME/$(basename \"$0\")\"; while :; do sleep 0.05; done");
  for (const char* folder : {"config", "log", "run"}) {
    ASSERT_EQ(::mkdir((muster / folder).c_str(), 0700), 0);
  }
  ASSERT_TRUE(WriteFileAtomically(muster / "config/supervisor.yaml", "drain: 4s\n").ok());
  ASSERT_TRUE(WriteFileAtomically(muster / "run/up.lock", "").ok());
  auto supervisor =
      Subprocess::Start({.argv = {"cli/muster", "supervise"}, .environment = muster.environment()});
  ASSERT_TRUE(supervisor.ok()) << supervisor.status();
  ASSERT_TRUE(testing::Await([&] {
    return ::access((muster / "muster-aggregator").c_str(), F_OK) == 0 &&
           ::access((muster / "muster-gateway").c_str(), F_OK) == 0;
  }));
  const Outcome down = muster({"down"});
  EXPECT_EQ(down.code, 0);
  EXPECT_THAT(down.err,
              ::testing::ContainsRegex("Waiting for the supervisor .*aggregator .process"));
  EXPECT_THAT(down.err, ::testing::HasSubstr("All services are stopped."));
  EXPECT_TRUE((*supervisor)->Wait(absl::Minutes(1)).has_value());
}

TEST(ProgramTest, VersionAsJsonPrintsOnlyDataOnStdout) {
  const Outcome version = Muster({"version", "--json"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.err, "");
  EXPECT_TRUE(nlohmann::json::parse(version.out).contains("version"));
}

TEST(ProgramTest, CommonAliasesOfVersionAndHelpWork) {
  const std::string version = Muster({"version"}).out;
  EXPECT_EQ(Muster({"--version"}).out, version);
  EXPECT_EQ(Muster({"-v"}).out, version);
  EXPECT_EQ(Muster({"help"}).out, Muster({"--help"}).out);
  EXPECT_EQ(Muster({"help", "node", "label"}).out, Muster({"node", "label", "--help"}).out);
  const std::string exec = Muster({"exec", "--help"}).out;
  EXPECT_EQ(Muster({"help", "exec", "--all", "--", "/usr/bin/uptime"}).out, exec);
  EXPECT_EQ(Muster({"help", "exec", "/usr/bin/uptime"}).out, exec) << "it would run with --help";
  const Outcome unknown = Muster({"help", "stauts"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(unknown.err, ::testing::HasSubstr("unknown command \"stauts\""));
}

TEST(ProgramTest, FlagTakesNoValue) {
  const Outcome outcome = Muster({"runs", "--json=no"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("error: --json takes no value\n"));
}

TEST(ProgramTest, FileThatIsNoSecretIsNamedAndItsModeIsNotCriticised) {
  const supervisor::TestFolder folder;
  const std::string file = folder / "passwd";
  ASSERT_TRUE(WriteFileAtomically(file, "root:x:0:0\n", 0644).ok());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"runs", "--context", file},
        {"node", "join", "--node", "n1", "--token-file", file},
        {"status", "--credentials", file}}) {
    const Outcome outcome = Muster(words, {"MUSTER_HOME=" + (folder / "home")});
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("INVALID_"));
    EXPECT_THAT(outcome.err, ::testing::Not(::testing::HasSubstr("chmod")));
  }
}

TEST(ProgramTest, RunDoesNotOverwriteAnExistingFileWithCredentials) {
  const supervisor::TestFolder folder;
  const std::string file = folder / "alice.json";
  ASSERT_TRUE(WriteFileAtomically(file, "secret", 0600).ok());
  const Outcome outcome =
      Muster({"run", "--plugin", "hostfacts", "--node", "n1", "--credentials", file},
             {"MUSTER_HOME=" + (folder / "home")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("FILE_EXISTS"));
}

TEST(ProgramTest, MissingAgentConfigurationPrintsThreeErrorLines) {
  const Outcome named = Muster({"agent", "--config", "/nope"});
  EXPECT_EQ(named.code, 2);
  EXPECT_THAT(named.err,
              ::testing::MatchesRegex("error: .*\n   on: configuration /nope\n next: .*\n"));
  EXPECT_THAT(Muster({"agent"}).err, ::testing::HasSubstr("--config names no file"));
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

TEST(ProgramTest, HomeThatCannotBeReadIsNotTakenForOneWithoutServices) {
  const supervisor::TestFolder folder;
  // As a home without permission, which root has for every home.
  const std::string home = folder / "home";
  ASSERT_EQ(::symlink("home", home.c_str()), 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"down"}, {"backup", "-o", folder / "backup"}}) {
    const Outcome outcome = Muster(words, {"MUSTER_HOME=" + home});
    EXPECT_EQ(outcome.code, 1) << words.front();
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("Too many levels of symbolic links (IO_ERROR)"));
  }
}

TEST(ProgramTest, FailedUpDoesNotStoreItsOptions) {
  const FakeInstallation muster("echo cause; exit 1");
  const auto up = [&muster](std::vector<std::string> options) {
    options.insert(options.begin(), "up");
    const Outcome outcome = muster(options);
    EXPECT_EQ(outcome.code, 1);
    return outcome.err;
  };
  const std::string first = up({"--port", "0", "--legacy-ports", "0", "--bind", "192.0.2.1"});
  EXPECT_THAT(first, ::testing::ContainsRegex(
                         "cannot listen on 192.0.2.1:[0-9]+: Cannot assign requested address"));
  EXPECT_THAT(first, ::testing::HasSubstr("The options of this command were not stored."));
  EXPECT_NE(::access((muster / "config/aggregator.yaml").c_str(), F_OK), 0);

  const std::string config = "listen: 127.0.0.1:0\n# by hand\n";
  ASSERT_TRUE(WriteFileAtomically(muster / "config/aggregator.yaml", config).ok());
  up({"--port", "0", "--legacy-ports", "0", "--bind", "192.0.2.1", "--keep", "runs=5"});
  EXPECT_EQ(*ReadFileBounded(muster / "config/aggregator.yaml", size_t{1} << 20), config);
}

TEST(ProgramTest, FailedJoinDoesNotSuggestToStartServices) {
  const FakeInstallation muster("exit 1");
  ASSERT_EQ(::mkdir((muster / "config").c_str(), 0700), 0);
  ASSERT_TRUE(WriteFileAtomically(muster / "config/aggregator.yaml", "").ok());
  const PrivateKey key = *PrivateKey::Generate();
  JoinToken token;
  token.fleet = "fleet-0badcafe.muster";
  token.id = std::string(32, '0');
  token.node = "n1";
  token.expires = absl::Now() + absl::Hours(1);
  token.join_targets = {
      supervisor::ListeningSockets().Listen("closed", {"127.0.0.1", 0})->address.ToString()};
  token.fleet_ca_pem = FleetRoot::Create(token.fleet, key, absl::Now())->certificate().ToPem();
  token.private_key_pem = *key.ToPkcs8Pem();
  ASSERT_TRUE(WriteFileAtomically(muster / "token", JoinTokenToJson(token).view()).ok());
  const Outcome join =
      muster({"node", "join", "--token-file", muster / "token", "--dir", muster / "n1"});
  EXPECT_EQ(join.code, 78) << join.err;
  EXPECT_THAT(join.err, ::testing::HasSubstr("Connection refused (UNREACHABLE)"));
  EXPECT_THAT(join.err, ::testing::Not(::testing::HasSubstr("muster up")));
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
  for (const absl::string_view line : absl::StrSplit(outcome.out, '\n')) {
    EXPECT_LE(line.size(), 80U) << absl::StrJoin(arguments, " ") << ": " << line;
  }
  for (const char* leak : {"FILE FILE", "INT in", "Excludes:"}) {
    EXPECT_EQ(outcome.out.find(leak), std::string::npos) << outcome.out;
  }
  for (const CLI::App* inner : app.get_subcommands({})) {
    std::vector<std::string> longer = words;
    longer.push_back(inner->get_name());
    ExpectHelp(*inner, longer);
  }
}

TEST(ProgramTest, HelpOfEveryCommandHasAnExample) { ExpectHelp(MakeCommandLine()->app, {}); }

}  // namespace
}  // namespace muster::cli
