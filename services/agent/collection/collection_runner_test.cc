// Collections by real processes.
#include "services/agent/collection/collection_runner.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/agent/collection/testing/runner_fixture.h"
#include "services/agent/jobs/process_mark.h"
#include "services/common/base/error.h"
#include "services/common/base/subprocess.h"
#include "services/common/rpc/proto_time.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

TEST_F(CollectionRunnerTest, OfferedPluginRunsAndItsSignedResultIsDelivered) {
  const auto committed = Collect(Offer(kSayHello));
  EXPECT_EQ(committed.body, "hello\n");
  EXPECT_EQ(committed.description.key().plugin(), "facts");
  EXPECT_EQ(committed.description.key().node(), "n1");
  EXPECT_FALSE(committed.description.is_error());
  EXPECT_NE(committed.signature, "");
}

TEST_F(CollectionRunnerTest, CommandOfAPluginReachesItsProgressPort) {
  const auto committed = Collect(OfferOf(R"({driver: DaemonSet, plugin-name: facts}
spec:
  command: [/bin/bash, -c]
  args:
  - |
    exec 3<>/dev/tcp/127.0.0.1/$SONOBUOY_PROGRESS_PORT
    printf 'POST /progress HTTP/1.0\r\nContent-Length: 9\r\n\r\nnonsense\n' >&3
    head -1 <&3 > $RESULTS_DIR/answer
    echo answer > $RESULTS_DIR/done
)"));
  EXPECT_NE(committed.body.find(" 400 "), std::string::npos) << committed.body;
}

TEST_F(CollectionRunnerTest, RepeatedOfferStartsNothing) {
  const std::string marks = folder_ + "/marks";
  const v1::CollectionOffer offer = Offer("echo x >> " + marks + "; " + kSayHello);
  for (int i = 0; i < 3; ++i) runner_->Offer(offer, peer_.target());
  Collect(offer);
  Begin();  // a restart
  runner_->Offer(offer, peer_.target());
  runner_->Stop();
  std::ifstream file(marks);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(file)), {}), "x\n");
}

TEST_F(CollectionRunnerTest, PluginRefusedByPolicyIsAnErrorResult) {
  Write("policy.yaml", "commands: [{argv: ['**']}]\n");  // exec, but not collect
  const auto committed = Collect(Offer(kSayHello));
  EXPECT_TRUE(committed.description.is_error());
  EXPECT_EQ(committed.body.substr(0, 15), "POLICY_REFUSED:") << committed.body;
}

TEST_F(CollectionRunnerTest, VariablesMustBeAdmittedByPolicy) {
  v1::CollectionOffer offer = Offer(kSayHello);
  offer.mutable_plugins(0)->mutable_definition_yaml()->append(
      "  env: [{name: LD_PRELOAD, value: /tmp/x.so}]\n");
  const auto committed = Collect(offer);
  EXPECT_NE(committed.body.find("does not admit the variable LD_PRELOAD"), std::string::npos);
}

TEST_F(CollectionRunnerTest, UnknownModuleIsAnErrorResult) {
  const auto committed = Collect(OfferOf("{driver: DaemonSet, plugin-name: facts}\nspec: {}\n"));
  EXPECT_EQ(committed.body.substr(0, 15), "MODULE_UNKNOWN:") << committed.body;
}

TEST_F(CollectionRunnerTest, InvalidDefinitionIsAnErrorResult) {
  EXPECT_EQ(Collect(OfferOf("{driver: Deamon}\n")).body.substr(0, 15), "INVALID_PLUGIN:");
}

TEST_F(CollectionRunnerTest, EndOfTheRunStopsThePlugin) {
  runner_->Offer(Offer("echo $$ > " + folder_ + "/pid; exec sleep 1000"), peer_.target());
  pid_t pid = 0;
  ASSERT_TRUE(testing::Await([&] { return bool(std::ifstream(folder_ + "/pid") >> pid); }));
  v1::CollectionEnded ended;
  ended.set_run(fleet_.run);
  ended.add_nodes("n2");
  runner_->End(ended);  // another run
  EXPECT_TRUE(std::filesystem::exists("/proc/" + std::to_string(pid)));
  ended.clear_nodes();
  runner_->End(ended);
  EXPECT_TRUE(
      testing::Await([&] { return !std::filesystem::exists("/proc/" + std::to_string(pid)); }));
  EXPECT_FALSE(peer_.committed());
  Collect(Offer(kSayHello));  // it may be offered again
}

TEST_F(CollectionRunnerTest, PluginOfAKilledAgentIsKilledAtTheStart) {
  runner_.reset();
  const std::string state = folder_ + "/collections/" + std::string(32, 'a');
  std::filesystem::create_directories(state);
  auto plugin = Subprocess::Start({.argv = {"/bin/sleep", "1000"}}).value();
  Write("collections/" + std::string(32, 'a') + "/process",
        ProcessMark::Of(plugin->pid()).value().ToText());
  Begin();
  EXPECT_EQ(plugin->Wait(absl::Minutes(1))->signal, SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(state + "/process"));
}

TEST_F(CollectionRunnerTest, EndOfTheRunRemovesTheStateOfItsCollections) {
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder_ + "/collections"), {});
  };
  v1::CollectionEnded ended;
  ended.set_run(fleet_.run);
  Collect(Offer(kSayHello));
  EXPECT_GT(files(), 0);
  runner_->End(ended);
  EXPECT_TRUE(testing::Await([&] { return files() == 0; }));
  runner_->Offer(Offer("echo $$ > " + folder_ + "/pid; exec sleep 1000"), peer_.target());
  ASSERT_TRUE(testing::Await([&] { return std::filesystem::exists(folder_ + "/pid"); }));
  EXPECT_GT(files(), 0);
  runner_->End(ended);
  EXPECT_TRUE(testing::Await([&] { return files() == 0; }));
}

// A later task, maybe in the memory of the ended one, keeps its state.
TEST_F(CollectionRunnerTest, EndOfTheRunWhenATaskHasWorkedConcernsNoLaterTask) {
  const std::vector<std::string> many = {"p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8"};
  const std::string other_run(fleet_.run.size(), 'e');
  Mutex mutex;
  std::vector<std::string> worked;
  options_.on_worked = [&](const std::string& plugin) {
    if (plugin == "ended") {
      v1::CollectionEnded ended;
      ended.set_run(fleet_.run);
      runner_->End(ended);
      runner_->Offer(OfferOf(other_run, {"next"}, kNoWork), peer_.target());
    } else if (plugin == "next") {  // the first task does not exist any more
      runner_->Offer(OfferOf(fleet_.run, many, kInvalid), peer_.target());
    }
    MutexLock lock(mutex);
    worked.push_back(plugin);
  };
  const auto has_worked = [&](const std::string& plugin) {
    MutexLock lock(mutex);
    return std::ranges::find(worked, plugin) != worked.end();
  };
  options_.max_parallel = 1;
  Begin();
  runner_->Offer(OfferOf(fleet_.run, {"ended"}, kNoWork), peer_.target());
  ASSERT_TRUE(testing::Await([&] { return has_worked(many.back()); }));
  runner_->Offer(OfferOf(fleet_.run, many, kInvalid), peer_.target());
  runner_->Offer(OfferOf(other_run, {"last"}, kNoWork), peer_.target());
  ASSERT_TRUE(testing::Await([&] { return has_worked("last"); }));
  runner_->Stop();
  EXPECT_EQ(worked.size(), many.size() + 3);
}

TEST_F(CollectionRunnerTest, DeliveryToARelayWithoutTheNodeIsRetried) {
  std::atomic<int> refusals = 2;
  peer_.judge = [&]() -> absl::Status {
    if (refusals-- <= 0) return absl::OkStatus();
    return MakeError(absl::StatusCode::kPermissionDenied, "NOT_ATTACHED", "n1 is not here", "");
  };
  EXPECT_EQ(Collect(Offer(kSayHello)).body, "hello\n");
}

TEST_F(CollectionRunnerTest, FailedPluginRunsOnceForARefusedDelivery) {
  std::atomic<int> refusals = 2;
  peer_.judge = [&]() -> absl::Status {
    if (refusals-- <= 0) return absl::OkStatus();
    return MakeError(absl::StatusCode::kPermissionDenied, "NOT_ATTACHED", "n1 is not here", "");
  };
  const std::string marks = folder_ + "/marks";
  const auto committed = Collect(Offer("echo x >> " + marks + "; echo the cause >&2; exit 7"));
  EXPECT_TRUE(committed.description.is_error());
  EXPECT_NE(committed.body.find("exit code 7"), std::string::npos) << committed.body;
  EXPECT_NE(committed.body.find("the cause"), std::string::npos) << committed.body;
  EXPECT_EQ(std::filesystem::file_size(marks), 2u);
}

// As a service with a wrong clock refuses it, before the call.
TEST_F(CollectionRunnerTest, DeliveryByARelayThatIsNotAcceptedIsRetried) {
  std::atomic<int> refusals = 2;
  peer_.judge = [&]() -> absl::Status {
    switch (refusals--) {
      case 2:
        return absl::PermissionDeniedError("IDENTITY_NOT_FORWARDABLE: the statement has expired");
      case 1:
        return absl::UnauthenticatedError("CERTIFICATE_EXPIRED: the certificate has expired");
      default:
        return absl::OkStatus();
    }
  };
  EXPECT_EQ(Collect(Offer(kSayHello)).body, "hello\n");
}

// Late results are accepted until the run is sealed.
TEST_F(CollectionRunnerTest, RefusedDeliveryIsRetriedAfterTheDeadlineOfTheRun) {
  v1::CollectionOffer offer = Offer(kSayHello);
  const absl::Time deadline = absl::Now() + absl::Seconds(3);
  ToProto(deadline, offer.mutable_deadline());
  peer_.judge = [&]() -> absl::Status {
    if (absl::Now() > deadline) return absl::OkStatus();
    return MakeError(absl::StatusCode::kPermissionDenied, "NOT_ATTACHED", "n1 is not here", "");
  };
  EXPECT_EQ(Collect(offer).body, "hello\n");
}

TEST_F(CollectionRunnerTest, EndOfTheRunDuringARefusedDeliveryIsNoFailure) {
  std::atomic<int> refusals = 0;
  peer_.judge = [&]() -> absl::Status {
    ++refusals;
    return MakeError(absl::StatusCode::kPermissionDenied, "NOT_ATTACHED", "n1 is not here", "");
  };
  ::testing::internal::CaptureStderr();  // the log
  runner_->Offer(Offer(kSayHello), peer_.target());
  const bool refused = testing::Await([&] { return refusals > 0; });
  v1::CollectionEnded ended;
  ended.set_run(fleet_.run);
  runner_->End(ended);
  runner_->Stop();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(refused);
  EXPECT_NE(log.find("a collection was stopped"), std::string::npos) << log;
  EXPECT_EQ(log.find("no genuine result"), std::string::npos) << log;
}

TEST_F(CollectionRunnerTest, ForeignAndInvalidOffersAreIgnored) {
  v1::CollectionOffer offer = Offer(kSayHello);
  offer.set_nodes(0, "n2");
  runner_->Offer(offer, peer_.target());
  offer = Offer(kSayHello);
  offer.set_run("../../etc");
  runner_->Offer(offer, peer_.target());
  offer = Offer(kSayHello);
  offer.mutable_plugins(0)->set_name("../x");
  runner_->Offer(offer, peer_.target());
  runner_->Stop();
  EXPECT_EQ(peer_.opens, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/collections"));
}

}  // namespace
}  // namespace muster
