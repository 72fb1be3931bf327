// Heartbeats as a status service and a run's listener receive them.
#include "services/common/errors/heartbeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/time/clock.h"
#include "services/client/client.h"
#include "services/client/test_listener.h"
#include "services/client/test_peer.h"
#include "services/client/test_status_peer.h"
#include "services/common/base/error.h"
#include "services/common/base/mutex.h"
#include "services/common/errors/results.h"
#include "testing/fixtures/await.h"

namespace muster::client {
namespace {

using muster::testing::Await;

class HeartbeatsTest : public ::testing::Test {
 protected:
  HeartbeatsTest() {
    peer_.Start();
    status_.Start();
    config_.grpc_targets = {peer_.target()};
    config_.status_targets = {status_.target()};
  }

  std::unique_ptr<Client> Make() {
    Status status;
    auto client = Client::Create(config_, &status);
    EXPECT_TRUE(client != nullptr) << status.message;
    return client;
  }

  // Records the calls of the watcher.
  HeartbeatWatcher Watcher() {
    return [this](const Status& status) {
      MutexLock lock(mutex_);
      told_.push_back(status.reason);
    };
  }
  std::vector<std::string> told() {
    MutexLock lock(mutex_);
    return told_;
  }

  const TestFleet fleet_ = TestFleet::Make();
  TestPeer peer_{fleet_};
  TestStatusPeer status_{fleet_};
  Config config_ = fleet_.ConfigOf("n1");
  Mutex mutex_;
  std::vector<std::string> told_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(HeartbeatsTest, FirstNamesTheSenderAndLastIsAGoodbye) {
  auto client = Make();
  client->SetPhase(Phase::kBlocked, "for \xFF");
  client->StartHeartbeats();
  client->StartHeartbeats();  // a second call has no effect
  ASSERT_TRUE(Await([&] { return !status_.heartbeats().empty(); }));
  const v1::StreamHeartbeatsRequest first = status_.heartbeats().front();
  EXPECT_EQ(first.node(), "n1");
  EXPECT_EQ(first.instance_id().size(), 32U);
  EXPECT_EQ(first.boot_id().size(), 36U);
  EXPECT_GT(first.sequence(), 0);
  EXPECT_TRUE(first.has_uptime());
  EXPECT_LT(std::abs(first.time().seconds() - absl::ToUnixSeconds(absl::Now())), 60);
  ASSERT_EQ(first.activities_size(), 1);
  EXPECT_EQ(first.activities(0).key().run(), fleet_.run);
  EXPECT_EQ(first.activities(0).key().plugin(), "facts");
  EXPECT_EQ(first.activities(0).key().node(), "n1");
  EXPECT_EQ(first.activities(0).phase(), v1::PHASE_BLOCKED);
  EXPECT_EQ(first.activities(0).message(), "for \xEF\xBF\xBD");
  EXPECT_FALSE(first.activities(0).has_fault());
  EXPECT_FALSE(first.goodbye());
  client.reset();
  EXPECT_TRUE(status_.SaidGoodbye());
  EXPECT_EQ(status_.streams, 1);
}

TEST_F(HeartbeatsTest, HeartbeatsFollowTheServersIntervalAndContainOnlyChanges) {
  status_.interval_ms = 250;
  const auto client = Make();
  client->StartHeartbeats();
  ASSERT_TRUE(Await([&] { return status_.heartbeats().size() >= 5; }));
  const auto heartbeats = status_.heartbeats();
  for (size_t i = 1; i < heartbeats.size(); ++i) {
    EXPECT_GT(heartbeats[i].sequence(), heartbeats[i - 1].sequence());
    EXPECT_EQ(heartbeats[i].activities_size(), 0);
    EXPECT_EQ(heartbeats[i].instance_id(), "") << "it is said once a stream";
  }
}

TEST_F(HeartbeatsTest, ProbeIsAnswered) {
  const auto client = Make();
  client->StartHeartbeats();
  ASSERT_TRUE(Await([&] { return client->ClockOffset().has_value(); }));
  status_.Probe();
  EXPECT_TRUE(Await([&] { return status_.heartbeats().size() == 2; }));
}

TEST_F(HeartbeatsTest, OnlyTheNewestChangeIsSentSoon) {
  const auto client = Make();
  client->StartHeartbeats();
  ASSERT_TRUE(Await([&] { return client->ClockOffset().has_value(); }));
  for (int i = 0; i < 1000; ++i) client->SetPhase(Phase::kWorking, std::to_string(i));
  client->SetFault(Fault{Fault::Check::kTls, "h:1", "refused", "Ask."});
  ASSERT_TRUE(Await([&] {
    return status_.Heard(
        [](const v1::Activity& a) { return a.message() == "999" && a.has_fault(); });
  }));
  EXPECT_LT(status_.heartbeats().size(), 20U);
  const v1::Fault fault = status_.heartbeats().back().activities(0).fault();
  EXPECT_EQ(fault.check(), v1::Fault::CHECK_TLS);
  EXPECT_EQ(fault.address(), "h:1");
  EXPECT_EQ(fault.message(), "refused");
  EXPECT_EQ(fault.next_step(), "Ask.");
}

TEST_F(HeartbeatsTest, NewStreamRepeatsTheWholeActivity) {
  const auto client = Make();
  client->StartHeartbeats(Watcher());
  ASSERT_TRUE(Await([&] { return client->ClockOffset().has_value(); }));
  status_.Cut();
  ASSERT_TRUE(Await([&] { return status_.heartbeats().size() == 2; }));
  const auto heartbeats = status_.heartbeats();
  EXPECT_EQ(heartbeats[1].instance_id(), heartbeats[0].instance_id());
  EXPECT_GT(heartbeats[1].sequence(), heartbeats[0].sequence());
  EXPECT_EQ(heartbeats[1].activities_size(), 1);
  EXPECT_TRUE(Await([&] { return told().size() == 2; }));
  EXPECT_EQ(told().back(), "") << "it was told that all is well again";
  EXPECT_TRUE(client->HeartbeatStatus().ok());
}

TEST_F(HeartbeatsTest, HeartbeatsResumeWhenTheYoungerAgentHasEnded) {
  status_.Stop();
  std::atomic<bool> younger = true;
  status_.judge_heartbeat = [&younger] {
    return younger ? MakeError(absl::StatusCode::kAborted, "DUPLICATE_AGENT",
                               "another sends heartbeats", "End one.")
                   : absl::OkStatus();
  };
  status_.Start();
  const auto client = Make();
  client->StartHeartbeats(Watcher());
  ASSERT_TRUE(Await([&] { return !told().empty(); }));
  EXPECT_EQ(client->HeartbeatStatus().reason, "DUPLICATE_AGENT");
  EXPECT_EQ(client->SubmitError("none").status.code, Code::kErrorDelivered);
  younger = false;
  EXPECT_TRUE(Await([&] { return client->HeartbeatStatus().ok(); }));
  client->StopHeartbeats();
  EXPECT_EQ(told(), (std::vector<std::string>{"DUPLICATE_AGENT", ""}));
}

TEST_F(HeartbeatsTest, ServiceWithoutHeartbeatsIsRetriedRarely) {
  status_.Stop();
  status_.serve_heartbeats = false;
  status_.Start();
  const auto client = Make();
  client->StartHeartbeats(Watcher());
  EXPECT_TRUE(client->ReportProgress({}).ok());
  EXPECT_EQ(client->SubmitError("none").status.code, Code::kErrorDelivered);
  EXPECT_TRUE(Await([&] { return !client->HeartbeatStatus().ok(); }));
  client->StopHeartbeats();
  EXPECT_TRUE(told().empty());
}

TEST_F(HeartbeatsTest, FailedReportIsSentWithTheNextHeartbeat) {
  status_.Stop();
  status_.judge_progress = [] { return errors::StatusNotReady(); };
  status_.Start();
  const auto client = Make();
  client->StartHeartbeats();
  Progress progress;
  progress.message = "half";
  progress.completed = 5;
  EXPECT_EQ(client->ReportProgress(progress).reason, "STATUS_NOT_READY");
  EXPECT_TRUE(Await([&] {
    return status_.Heard([](const v1::Activity& a) {
      return a.progress().message() == "half" && a.progress().completed() == 5;
    });
  }));
  ASSERT_TRUE(Await([&] { return client->ClockOffset().has_value(); }));
  client->SetPhase(Phase::kWorking, "later");
  ASSERT_TRUE(Await(
      [&] { return status_.Heard([](const v1::Activity& a) { return a.message() == "later"; }); }));
  EXPECT_FALSE(status_.heartbeats().back().activities(0).has_progress())
      << "the progress was sent already";
}

TEST_F(HeartbeatsTest, ReportWithAnyBytesArrivesAsText) {
  Progress progress;
  progress.message = std::string(1 << 20, 'm') + "\xFF";
  progress.failures.assign(1000, "\xC3");
  EXPECT_TRUE(Make()->ReportProgress(progress).ok());
  const v1::ReportProgressRequest report = status_.reports().at(0);
  EXPECT_EQ(report.message(), std::string(4096, 'm'));
  EXPECT_EQ(report.failures_size(), 100);
  EXPECT_EQ(report.failures(0), "\xEF\xBF\xBD");
}

TEST_F(HeartbeatsTest, DelayedDeliveryIsReported) {
  std::atomic<bool> busy{true};
  peer_.judge = [&] {
    return busy ? WithRetryAfter(errors::TooManyUploads(1), absl::Seconds(1)) : absl::OkStatus();
  };
  const auto client = Make();
  client->StartHeartbeats();
  Delivery delivery;
  std::jthread deliverer([&] { delivery = client->SubmitError("none"); });
  EXPECT_TRUE(Await([&] { return status_.HeardPhase(v1::PHASE_BACKPRESSURED); }));
  busy = false;
  deliverer.join();
  EXPECT_EQ(delivery.status.code, Code::kErrorDelivered);
  EXPECT_TRUE(Await([&] { return status_.HeardPhase(v1::PHASE_DELIVERING); }));
}

TEST_F(HeartbeatsTest, UnreachableStatusServiceDelaysNoDelivery) {
  status_.Stop();
  auto client = Make();
  client->StartHeartbeats(Watcher());
  EXPECT_EQ(client->SubmitError("none").status.code, Code::kErrorDelivered);
  EXPECT_TRUE(Await([&] { return !told().empty(); }));
  EXPECT_FALSE(client->HeartbeatStatus().ok());
  client.reset();
  EXPECT_EQ(told().size(), 1U) << "each loss is told once";
}

TEST_F(HeartbeatsTest, ClockOffsetFollowsTheAnswers) {
  status_.clock_ahead_ms = 3'600'000;
  const auto client = Make();
  client->StartHeartbeats();
  ASSERT_TRUE(Await([&] { return client->ClockOffset().has_value(); }));
  EXPECT_NEAR(client->ClockOffset()->count(), 3'600'000, 120'000);
}

class HttpsHeartbeatsTest : public HeartbeatsTest {
 protected:
  HttpsHeartbeatsTest() {
    config_.grpc_targets.clear();
    config_.status_targets.clear();
    config_.aggregator_url = listener_.url();
    config_.ca_cert = fleet_.run_ca_pem;
  }

  TestListener listener_{fleet_};
};

TEST_F(HttpsHeartbeatsTest, HeartbeatIsAGetAtTheIntervalOfTheAnswer) {
  const auto client = Make();
  client->StartHeartbeats(Watcher());
  ASSERT_TRUE(Await([&] { return listener_.seen().size() >= 3; }));
  EXPECT_EQ(listener_.seen().back().path, "/api/v1/health/by-node/n1/facts");
  EXPECT_TRUE(client->HeartbeatStatus().ok());
  EXPECT_TRUE(client->ClockOffset().has_value());
  EXPECT_TRUE(told().empty());
}

TEST_F(HttpsHeartbeatsTest, PluginThatRunsOnceUsesTheGlobalPath) {
  config_.node = "global";
  const auto client = Make();
  client->StartHeartbeats();
  ASSERT_TRUE(Await([&] { return !listener_.seen().empty(); }));
  EXPECT_EQ(listener_.seen().back().path, "/api/v1/health/global/facts");
}

TEST_F(HttpsHeartbeatsTest, OlderListenerIsIgnoredAndRefusalIsReported) {
  listener_.answers = {404};
  {
    const auto client = Make();
    client->StartHeartbeats(Watcher());
    ASSERT_TRUE(Await([&] { return listener_.seen().size() == 1; }));
  }
  EXPECT_TRUE(told().empty());
  listener_.answers = {403};
  const auto client = Make();
  client->StartHeartbeats(Watcher());
  ASSERT_TRUE(Await([&] { return !told().empty(); }));
  EXPECT_EQ(told(), std::vector<std::string>{"NOT_YOURS"});
}

TEST_F(HttpsHeartbeatsTest, InvalidAnswerIsIgnored) {
  for (const char* nonsense : {"", "[]", R"({"interval_seconds":"x"})",
                               R"({"interval_seconds":-1})", R"({"interval_seconds":1e300})"}) {
    listener_.health = nonsense;
    const auto client = Make();
    client->StartHeartbeats(Watcher());
    EXPECT_TRUE(Await([&] { return client->ClockOffset().has_value(); })) << nonsense;
  }
  EXPECT_TRUE(told().empty());
}

}  // namespace
}  // namespace muster::client
