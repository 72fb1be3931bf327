// Each kind of connection fault, with real servers.
#include "services/agent/preflight/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "services/client/client.h"
#include "services/client/test_listener.h"
#include "services/client/test_peer.h"
#include "services/client/test_status_peer.h"
#include "services/common/errors/runs.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using client::Fault;
using Check = client::Fault::Check;
using ::testing::HasSubstr;

class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() {
    peer_.Start();
    status_.Start();
    config_.grpc_targets = {peer_.target()};
    config_.status_targets = {status_.target()};
  }

  std::unique_ptr<client::Client> Make() {
    client::Status status;
    auto client = client::Client::Create(config_, &status);
    EXPECT_TRUE(client != nullptr) << status.message;
    client->StartHeartbeats();
    return client;
  }

  // Returns the fault, which must be of this kind.
  Fault Find(Check check) {
    const auto fault = CheckConnection(config_, *Make(), {});
    EXPECT_TRUE(fault.has_value());
    if (!fault) return {};
    EXPECT_EQ(fault->check, check) << fault->message;
    EXPECT_NE(fault->message, "");
    EXPECT_NE(fault->next_step, "");
    return *fault;
  }
  std::optional<Fault> FindAny() { return CheckConnection(config_, *Make(), {}); }

  const client::TestFleet fleet_ = client::TestFleet::Make();
  client::TestPeer peer_{fleet_};
  client::TestStatusPeer status_{fleet_};
  client::Config config_ = fleet_.ConfigOf("n1");
};

TEST_F(PreflightTest, ValidConnectionHasNoFault) {
  const auto fault = FindAny();
  EXPECT_FALSE(fault) << fault->message;
}

TEST_F(PreflightTest, UnknownNameIsReported) {
  config_.grpc_targets = {"no-such-host.invalid:7440"};
  const Fault fault = Find(Check::kNameResolution);
  EXPECT_EQ(fault.address, "no-such-host.invalid:7440");
  EXPECT_THAT(fault.message, HasSubstr("no-such-host.invalid"));
  config_.grpc_targets = {"nonsense"};
  Find(Check::kNameResolution);
}

TEST_F(PreflightTest, ClosedPortIsReported) {
  peer_.Stop();
  const Fault fault = Find(Check::kConnection);
  EXPECT_EQ(fault.address, peer_.target());
  EXPECT_THAT(fault.message, HasSubstr("refused"));
}

TEST_F(PreflightTest, UntrustedServerIsReported) {
  const std::string good = config_.fleet_ca_cert;
  config_.fleet_ca_cert = client::TestFleet::Make().root_pem;
  EXPECT_THAT(Find(Check::kTls).message, HasSubstr("the server's certificate is refused"));
  config_.fleet_ca_cert = good;
  config_.grpc_targets = {status_.target()};
  EXPECT_THAT(Find(Check::kTls).message, HasSubstr("not an aggregator"));
}

TEST_F(PreflightTest, RejectedClientCertificateIsReported) {
  const auto [chain, key] = client::TestFleet::Make().RunCredential("n1");
  config_.client_cert = chain;
  config_.client_key = key;
  EXPECT_THAT(Find(Check::kTls).message, HasSubstr("rejects the client certificate"));
}

TEST_F(PreflightTest, WrongClockIsReported) {
  status_.clock_ahead_ms = 3'600'000;
  EXPECT_THAT(Find(Check::kClock).message, HasSubstr("behind the fleet's"));
  status_.clock_ahead_ms = -3'600'000;
  EXPECT_THAT(Find(Check::kClock).message, HasSubstr("ahead of the fleet's"));
}

TEST_F(PreflightTest, ForeignPairIsReported) {
  peer_.judge_read = [] { return errors::PairNotPlanned("r", "facts", "n1"); };
  EXPECT_EQ(Find(Check::kAuthorisation).address, peer_.target());
}

TEST_F(PreflightTest, OneValidAddressIsSufficientElseTheFurthestFaultIsReported) {
  const std::string good = peer_.target();
  config_.grpc_targets = {"127.0.0.1:1", good};
  EXPECT_FALSE(FindAny());
  peer_.judge_read = [] { return errors::RunNotFound("r"); };
  config_.grpc_targets = {good, "127.0.0.1:1"};
  EXPECT_EQ(Find(Check::kAuthorisation).address, good);
}

TEST_F(PreflightTest, StopEndsTheCheck) {
  std::stop_source stop;
  stop.request_stop();
  config_.grpc_targets = {"127.0.0.1:1"};
  EXPECT_FALSE(CheckConnection(config_, *Make(), stop.get_token()));
}

TEST_F(PreflightTest, LegacyListenerIsChecked) {
  client::TestListener listener(fleet_);
  config_.grpc_targets.clear();
  config_.status_targets.clear();
  config_.aggregator_url = listener.url() + "/";
  config_.ca_cert = fleet_.run_ca_pem;
  const auto ask = [&] {  // without heartbeats, which would take the listener's answers
    client::Status status;
    return CheckConnection(config_, *client::Client::Create(config_, &status), {});
  };
  EXPECT_FALSE(ask());
  listener.answers = {404, 503, 403};
  EXPECT_FALSE(ask()) << "an older listener";
  EXPECT_FALSE(ask()) << "one that cannot say it yet";
  auto fault = ask();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->check, Check::kAuthorisation) << fault->message;
  config_.ca_cert = client::TestFleet::Make().run_ca_pem;
  fault = ask();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->check, Check::kTls) << fault->message;
}

TEST_F(PreflightTest, FaultIsReportedInHeartbeatsUntilItEnds) {
  peer_.Stop();
  const auto client = Make();
  Preflight preflight(config_, *client);
  EXPECT_TRUE(preflight.AwaitFirst(absl::Minutes(1), {}));
  const auto await_fault = [&](bool faulty) {
    return testing::Await([&] {
      const auto heartbeats = status_.heartbeats();
      return !heartbeats.empty() && heartbeats.back().activities_size() == 1 &&
             heartbeats.back().activities(0).has_fault() == faulty;
    });
  };
  EXPECT_TRUE(await_fault(true));
  EXPECT_EQ(status_.heartbeats().back().activities(0).fault().check(), v1::Fault::CHECK_CONNECTION);
  peer_.Start();
  EXPECT_TRUE(await_fault(false));
}

}  // namespace
}  // namespace muster
