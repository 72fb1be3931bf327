// The agent as a program: modules, exit codes, restarts, stops.
#include "services/agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "services/agent/jobs/process_mark.h"
#include "services/agent/testing/agent_fixture.h"
#include "services/client/client.h"
#include "services/common/base/error.h"
#include "services/common/base/subprocess.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using client::Code;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Binds a port of the loopback address; returns it with its socket.
std::pair<uint16_t, UniqueFd> HoldPort() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size);
  ::listen(fd.get(), 1);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return {ntohs(address.sin_port), std::move(fd)};
}

TEST_F(AgentTest, PluginOfAKilledAgentEndsBeforeTheNextAttempt) {
  // The second process of the plugin outlives its leader, as a helper in its group.
  config_["definition"] =
      Definition("if [ -e " + base_ +
                 "/second ]; then echo x > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done; "
                 "else sleep 1000 & echo $$ $! > " +
                 base_ + "/pids; exec sleep 1001; fi");
  auto agent = Start();
  pid_t leader = 0;
  pid_t helper = 0;
  ASSERT_TRUE(
      testing::Await([&] { return bool(std::ifstream(base_ + "/pids") >> leader >> helper); }));
  agent->Signal(SIGKILL);
  ASSERT_EQ(agent->Wait(absl::Minutes(1))->signal, SIGKILL);
  const auto running = [](pid_t pid) { return ProcessMark::Of(pid).ok(); };
  ASSERT_TRUE(running(leader));
  kill(leader, SIGKILL);
  ASSERT_TRUE(testing::Await([&] { return !running(leader); }));
  ASSERT_TRUE(running(helper));
  std::ofstream(base_ + "/second") << "";
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_TRUE(testing::Await([&] { return !running(helper); }));
}

TEST_F(AgentTest, HeartbeatsReportTheActivity) {
  StartStatus();
  config_["definition"] = Definition("while [ ! -e " + base_ +
                                     "/go ]; do sleep 0.05; done; echo x > $RESULTS_DIR/r; "
                                     "echo r > $RESULTS_DIR/done");
  const auto child = Start();
  EXPECT_TRUE(testing::Await([&] { return status_.HeardPhase(v1::PHASE_WORKING); }))
      << child->StderrTail();
  EXPECT_TRUE(status_.HeardPhase(v1::PHASE_CHECKING));
  std::ofstream(base_ + "/go") << "";
  EXPECT_TRUE(child->Wait(absl::Minutes(2))->ok()) << child->StderrTail();
  EXPECT_TRUE(status_.SaidGoodbye());
  EXPECT_EQ(status_.heartbeats().front().activities(0).key().plugin(), "facts");
  EXPECT_EQ(status_.streams, 1);
}

TEST_F(AgentTest, HeartbeatsReportTheWaitForADoneFile) {
  StartStatus();
  config_["mode"] = "wait";
  const auto child = Start();
  EXPECT_TRUE(testing::Await([&] { return status_.HeardPhase(v1::PHASE_WAITING); }))
      << child->StderrTail();
  child->Signal(SIGKILL);
  ASSERT_TRUE(child->Wait(absl::Minutes(1)));
  EXPECT_FALSE(status_.SaidGoodbye());
}

TEST_F(AgentTest, ConnectionFaultIsReportedAndTheWorkContinues) {
  StartStatus();
  peer_.Stop();
  config_["definition"] = Definition("echo x > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done");
  const auto child = Start();
  EXPECT_TRUE(testing::Await([&] {
    return status_.Heard([&](const v1::Activity& activity) {
      return activity.fault().check() == v1::Fault::CHECK_CONNECTION &&
             activity.fault().address() == peer_.target();
    });
  })) << child->StderrTail();
  EXPECT_TRUE(testing::Await([&] { return status_.HeardPhase(v1::PHASE_DELIVERING); }));
  peer_.Start();
  EXPECT_TRUE(child->Wait(absl::Minutes(2))->ok()) << child->StderrTail();
  EXPECT_THAT(child->StderrTail(), HasSubstr("the connection check failed"));
}

TEST_F(AgentTest, SecondAgentEndsHeartbeatsButNotTheWork) {
  status_.judge_heartbeat = [] {
    return MakeError(absl::StatusCode::kAborted, "DUPLICATE_AGENT", "another sends heartbeats",
                     "End one.");
  };
  StartStatus();
  config_["definition"] = Definition("echo x > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done");
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_THAT(said_, HasSubstr("another agent sends heartbeats with this identity"));
}

TEST_F(AgentTest, PluginReportsProgressLocally) {
  StartStatus();
  config_["progress_port"] = HoldPort().first;
  config_["definition"] = Json({{"sonobuoy-config", {{"driver", "Job"}, {"plugin-name", "facts"}}},
                                {"spec",
                                 {{"command", {"/bin/bash", "-c"}},
                                  {"args", {R"(exec 3<>/dev/tcp/127.0.0.1/$SONOBUOY_PROGRESS_PORT
body='{"msg":"disk 3","total":8,"completed":3}'
printf 'POST /progress HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s' ${#body} "$body" >&3
head -1 <&3 > $RESULTS_DIR/answer; echo answer > $RESULTS_DIR/done)"}}}}})
                              .dump();
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_THAT(peer_.committed()->body, HasSubstr(" 200 "));
  ASSERT_EQ(status_.reports().size(), 1U);
  EXPECT_EQ(status_.reports()[0].message(), "disk 3");
  EXPECT_EQ(status_.reports()[0].key().node(), "n1");
}

TEST_F(AgentTest, UsedProgressPortDoesNotStopTheWork) {
  const auto held = HoldPort();
  config_["progress_port"] = held.first;
  config_["definition"] = Definition(
      "echo \"port $SONOBUOY_PROGRESS_PORT\" > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done");
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_EQ(peer_.committed()->body, "port \n");
  EXPECT_THAT(said_, HasSubstr("PORT_IN_USE"));
}

TEST_F(AgentTest, CommandOfTheDefinitionRunsAndItsDoneFileIsDelivered) {
  config_["definition"] = Definition(
      "echo \"$NODE_NAME $RESULT_TYPE $SECRET_OF_THE_AGENT\" > \"$RESULTS_DIR/out.txt\"; "
      "echo \"$RESULTS_DIR/out.txt\" > \"$RESULTS_DIR/done\"; sleep 1000");
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_EQ(peer_.committed()->body, "n1 facts \n");
  EXPECT_EQ(peer_.committed()->description.file_name(), "out.txt");
  EXPECT_EQ(Run(), Code::kOk) << "a second start has nothing left to do: " << said_;
  EXPECT_EQ(peer_.committed()->generation, 1);
}

TEST_F(AgentTest, MissingDefinitionIsFetchedFromTheFleet) {
  peer_.definition_yaml = Definition("echo asked > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done");
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_EQ(peer_.committed()->body, "asked\n");
}

TEST_F(AgentTest, FilesArePackedWithoutADoneFile) {
  config_["definition"] = Definition("echo a > $RESULTS_DIR/a; echo b > $RESULTS_DIR/b");
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_EQ(peer_.committed()->description.media_type(), "application/gzip");
}

TEST_F(AgentTest, FactsOfThisMachineAreDelivered) {
  config_["module"] = "hostfacts";
  config_["mode"] = "module";
  EXPECT_EQ(Run(), Code::kOk) << said_;
  const Json facts = Json::parse(peer_.committed()->body);
  EXPECT_TRUE(facts.contains("ansible_kernel"));
  EXPECT_EQ(peer_.committed()->description.file_name(), "facts.json");
  EXPECT_THAT(peer_.committed()->body, HasSubstr("\n  \"ansible_"));
}

TEST_F(AgentTest, ResultOfAnotherProcessIsDelivered) {
  config_["mode"] = "wait";
  const auto child = Start();
  std::ofstream(base_ + "/results/r") << "late";
  std::ofstream(base_ + "/results/done") << base_ << "/results/r\n";
  EXPECT_TRUE(child->Wait(absl::Minutes(2))->ok()) << child->StderrTail();
  EXPECT_EQ(peer_.committed()->body, "late");
}

TEST_F(AgentTest, RestartAfterAKillDeliversWithoutRunningThePluginAgain) {
  const std::string counter = base_ + "/runs";
  config_["definition"] =
      Definition("echo x >> " + counter +
                 "; head -c 3000000 /dev/urandom > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done");
  std::atomic<int64_t> reached{0};
  std::atomic<bool> hold{true};
  peer_.on_chunk = [&](int64_t offset) {
    reached = offset;
    while (hold && offset >= 1'000'000) std::this_thread::yield();
  };
  {
    const auto child = Start();
    ASSERT_TRUE(testing::Await([&] { return reached >= 1'000'000; })) << child->StderrTail();
    child->Signal(SIGKILL);
    ASSERT_TRUE(child->Wait(absl::Minutes(1)));
  }
  hold = false;
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_EQ(peer_.committed()->body.size(), 3'000'000U);
  EXPECT_EQ(peer_.committed()->description.attempt(), 1);
  EXPECT_EQ(fs::file_size(counter), 2U) << "the plugin ran again";
  EXPECT_LT(peer_.chunk_bytes, 4'500'000) << "it began anew";
}

TEST_F(AgentTest, FailedDeliveryPrintsTheReason) {
  const std::string file = base_ + "/file";
  std::ofstream(file) << "content";
  const std::pair<absl::Status, Code> verdicts[] = {
      {errors::PairNotPlanned("r", "facts", "n1"), Code::kRefused},
      {errors::ResultConflict("facts", "n1"), Code::kConflict},
      {errors::RunSealed("r"), Code::kRunEnded},
      {errors::RunCancelled("r"), Code::kRunEnded},
      {errors::RunNotFound("r"), Code::kRunEnded},
      {errors::TooLargeForSubmit(1, 1), Code::kFailed}};
  for (const auto& [verdict, code] : verdicts) {
    peer_.judge = [verdict = verdict] { return verdict; };
    EXPECT_EQ(Run(file), code) << verdict;
    EXPECT_THAT(said_, HasSubstr(std::string(verdict.message())));
  }
  peer_.judge = nullptr;
  EXPECT_EQ(Run(file), Code::kOk);
  EXPECT_THAT(said_, HasSubstr("committed: 7 bytes"));
}

TEST_F(AgentTest, InvalidConfigurationIsReported) {
  config_["plugni"] = "x";
  EXPECT_EQ(Run(), Code::kBadConfig);
  EXPECT_THAT(said_, ::testing::AllOf(HasSubstr("plugni"), HasSubstr("plugin")));
  config_.erase("plugni");
  config_["mode"] = "module";
  config_["module"] = "nonsense";
  EXPECT_EQ(Run(), Code::kBadConfig);
  EXPECT_THAT(said_, HasSubstr("nonsense"));
}

TEST_F(AgentTest, DeadlineEndsTheDelivery) {
  config_["deadline"] = "2020-01-01T00:00:00Z";
  std::ofstream(base_ + "/file") << "x";
  peer_.Stop();
  EXPECT_EQ(Run(base_ + "/file"), Code::kDeadline) << said_;
}

TEST_F(AgentTest, StopEndsThePluginAndDeliversNothing) {
  config_["definition"] = Definition("echo $$ > " + base_ + "/pid; exec sleep 1000");
  const auto child = Start();
  ASSERT_TRUE(
      testing::Await([&] { return fs::exists(base_ + "/pid") && fs::file_size(base_ + "/pid"); }));
  child->Signal(SIGTERM);
  const auto exit = child->Wait(absl::Minutes(1));
  ASSERT_TRUE(exit);
  EXPECT_EQ(static_cast<Code>(exit->exit_code), Code::kInterrupted) << child->StderrTail();
  pid_t plugin = 0;
  std::ifstream(base_ + "/pid") >> plugin;
  EXPECT_TRUE(testing::Await([&] { return ::kill(plugin, 0) != 0; })) << "the plugin runs on";
  EXPECT_FALSE(peer_.committed().has_value());
}

}  // namespace
}  // namespace muster
